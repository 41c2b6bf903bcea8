#!/bin/sh
# 60 trainings on two GPUs that are only declared: crashes, a hang, a power cut, and too little memory. `./dev sweep` runs
# this with all it needs: `holdfast`, a `python3` with numpy, and the project's root as the working directory.
set -eu

HOLDFAST_DATA=$(mktemp -d)
HOLDFAST_DEVICES=examples/sweep/gpus.json # without it those of the machine are found
HOLDFAST_NOTIFY_COMMANDS=$PWD/examples/sweep/tell
export HOLDFAST_DATA HOLDFAST_DEVICES HOLDFAST_NOTIFY_COMMANDS
trap 'power_cut; rm -rf "$HOLDFAST_DATA"' EXIT
trap 'exit 130' INT TERM

show() {
    printf '\n$ %s\n' "$*"
    "$@" 2>&1
}

# Kills the server, what starts and watches programs, and the programs: all that have the directory in their environment.
power_cut() {
    for process in $(grep -lsa "$HOLDFAST_DATA" /proc/[0-9]*/environ | cut -d/ -f3); do
        kill -9 "$process" 2>/dev/null || true
    done
}

succeeded() {
    holdfast get arrays sweep -o custom-columns=N:.succeeded | tr -dc 0-9
}

holdfast up --daemon --port 0 2>"$HOLDFAST_DATA/out"
holdfast apply -f - <<END
apiVersion: holdfast.dev/v1
kind: Notifier
metadata: {name: me}
spec: {type: command, command: ["$HOLDFAST_NOTIFY_COMMANDS", "$HOLDFAST_DATA/mailbox"]}
END
show holdfast submit -f examples/sweep/sweep.yaml
until [ "$(succeeded)" -ge 12 ]; do sleep 0.2; done
show holdfast get devices
show holdfast get arrays

printf '\n# A power cut: the server and every program are killed. Then the server is started again.\n'
power_cut
holdfast up --daemon --port 0 2>"$HOLDFAST_DATA/out"
show holdfast wait array sweep || true
show holdfast why sweep
show holdfast attempts sweep --index 50
show holdfast logs sweep --index 50
show holdfast rerun sweep --failed --set memory=256Mi
show holdfast wait array sweep-rerun-1
show holdfast logs sweep-rerun-1 --index 25

printf '\n# What the notifier was told:\n'
until [ "$(wc -l <"$HOLDFAST_DATA/mailbox")" -ge 2 ]; do sleep 0.1; done
cat "$HOLDFAST_DATA/mailbox"
