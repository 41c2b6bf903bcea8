CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.attempts (
    job_id text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    status text NOT NULL,
    status_since double precision NOT NULL,
    tries integer NOT NULL,
    dispatch integer NOT NULL,
    created_at double precision NOT NULL,
    started_at double precision,
    ended_at double precision,
    cpu_m bigint NOT NULL,
    memory bigint NOT NULL,
    gpu integer NOT NULL,
    ending text,
    failure text,
    decision text,
    retry_at double precision,
    message text NOT NULL,
    named text,
    CONSTRAINT ck_attempts_counts CHECK (((tries >= 0) AND (dispatch >= 0))),
    CONSTRAINT ck_attempts_number CHECK ((number >= 1))
);
CREATE TABLE public.audit (
    seq bigint NOT NULL,
    at double precision NOT NULL,
    actor text NOT NULL,
    act text NOT NULL,
    subject text NOT NULL,
    name text NOT NULL,
    origin text NOT NULL,
    request_id text NOT NULL,
    outcome text NOT NULL,
    detail text NOT NULL
);
CREATE SEQUENCE public.audit_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.audit_seq_seq OWNED BY public.audit.seq;
CREATE TABLE public.entries (
    kind text NOT NULL,
    name text NOT NULL,
    body text NOT NULL,
    submitted_by text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.discards (
    place text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.endpoints (
    seq bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    system text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL,
    job_id text NOT NULL COLLATE pg_catalog."C",
    job_name text NOT NULL,
    attempt integer NOT NULL,
    rank integer NOT NULL,
    metadata text NOT NULL,
    until double precision
);
CREATE SEQUENCE public.endpoints_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.endpoints_seq_seq OWNED BY public.endpoints.seq;
CREATE TABLE public.events (
    seq bigint NOT NULL,
    job_id text COLLATE pg_catalog."C",
    job_seq integer,
    type text NOT NULL,
    version integer NOT NULL,
    at double precision NOT NULL,
    data text NOT NULL,
    group_name text COLLATE pg_catalog."C",
    submitted_by text COLLATE pg_catalog."C",
    submitter_uid bigint,
    queue text
);
CREATE SEQUENCE public.events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.events_seq_seq OWNED BY public.events.seq;
CREATE TABLE public.history (
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    seq integer NOT NULL,
    phase text NOT NULL,
    from_status text NOT NULL,
    to_status text NOT NULL,
    outcome text NOT NULL,
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    error_code text NOT NULL,
    message text NOT NULL,
    attempts integer NOT NULL,
    steps text NOT NULL,
    CONSTRAINT ck_history_merged CHECK ((attempts >= 1))
);
CREATE TABLE public.idempotency (
    key text NOT NULL,
    fingerprint text NOT NULL,
    job_ids text NOT NULL,
    created_at double precision NOT NULL
);
CREATE TABLE public.intake (
    seq bigint NOT NULL,
    queue text NOT NULL,
    submitted_by text NOT NULL COLLATE pg_catalog."C",
    at double precision NOT NULL,
    count integer NOT NULL
);
CREATE SEQUENCE public.intake_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.intake_seq_seq OWNED BY public.intake.seq;
CREATE TABLE public.job_labels (
    job_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.jobs (
    seq bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    queue text NOT NULL,
    priority bigint NOT NULL,
    submitted_at double precision NOT NULL,
    spec bytea NOT NULL,
    gang integer NOT NULL,
    cpu_m bigint NOT NULL,
    memory bigint NOT NULL,
    gpu integer NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    attempt integer NOT NULL,
    queued_at double precision NOT NULL,
    retry_at double precision,
    updated_at double precision NOT NULL,
    started_at double precision,
    ended_at double precision,
    counters text NOT NULL,
    retries integer NOT NULL,
    avoid_node text,
    cancel_requested boolean NOT NULL,
    set_id text COLLATE pg_catalog."C",
    replicated_job text,
    job_index integer,
    named text,
    ready_at double precision,
    met text,
    avoid_devices text,
    submitted_by text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    submitter_uid bigint,
    group_name text COLLATE pg_catalog."C",
    kind text DEFAULT 'gang'::text NOT NULL,
    avoid_nodes text,
    tried text,
    parent text COLLATE pg_catalog."C",
    CONSTRAINT ck_jobs_counts CHECK (((attempt >= 0) AND (retries >= 0))),
    CONSTRAINT ck_jobs_gang CHECK ((gang >= 1))
);
CREATE SEQUENCE public.jobs_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.jobs_seq_seq OWNED BY public.jobs.seq;
CREATE TABLE public.leadership (
    id integer NOT NULL,
    epoch bigint NOT NULL,
    owner text NOT NULL,
    expires_at double precision NOT NULL,
    as_submitters boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_leadership_one_row CHECK ((id = 1))
);
CREATE TABLE public.names (
    name text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    taken_at double precision NOT NULL
);
CREATE TABLE public.nodes (
    executor text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    cpu_m bigint NOT NULL,
    memory bigint NOT NULL,
    gpu integer NOT NULL,
    labels text NOT NULL,
    seen_at double precision NOT NULL,
    engine text DEFAULT ''::text NOT NULL,
    capabilities text DEFAULT ''::text NOT NULL,
    named text,
    devices text DEFAULT '[]'::text NOT NULL,
    short text
);
CREATE TABLE public.notifications (
    seq bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    notifier text NOT NULL,
    about text NOT NULL COLLATE pg_catalog."C",
    created_at double precision NOT NULL,
    body text NOT NULL,
    state text NOT NULL,
    tries integer NOT NULL,
    since double precision NOT NULL,
    next_at double precision NOT NULL,
    settled_at double precision,
    error text NOT NULL
);
CREATE SEQUENCE public.notifications_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.notifications_seq_seq OWNED BY public.notifications.seq;
CREATE TABLE public.places (
    id text NOT NULL COLLATE pg_catalog."C",
    came_at double precision NOT NULL,
    left_at double precision
);
CREATE TABLE public.policies (
    name text NOT NULL,
    revision integer NOT NULL,
    submitted_by text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.policy_revisions (
    name text NOT NULL,
    revision integer NOT NULL,
    body text NOT NULL,
    CONSTRAINT ck_policy_revisions_revision CHECK ((revision >= 1))
);
CREATE TABLE public.quarantine (
    id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    since double precision NOT NULL,
    message text NOT NULL
);
CREATE TABLE public.requests (
    id bigint NOT NULL,
    kind text NOT NULL,
    job_ids text NOT NULL,
    created_at double precision NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    payload text DEFAULT ''::text NOT NULL
);
CREATE SEQUENCE public.requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.requests_id_seq OWNED BY public.requests.id;
CREATE TABLE public.reruns (
    root text NOT NULL COLLATE pg_catalog."C",
    task integer NOT NULL,
    number integer NOT NULL,
    "array" text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.runs (
    uid text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    dispatch integer NOT NULL,
    rank integer NOT NULL,
    status text NOT NULL,
    status_since double precision NOT NULL,
    executor text NOT NULL,
    node text NOT NULL,
    cpu_m bigint NOT NULL,
    memory bigint NOT NULL,
    gpu integer NOT NULL,
    started_at double precision,
    ended_at double precision,
    outcome text,
    progress text DEFAULT ''::text NOT NULL,
    failure text,
    decision text,
    generation integer DEFAULT 1 NOT NULL,
    named text,
    devices text,
    interrupted text,
    token_digest text,
    ports text,
    CONSTRAINT ck_runs_place CHECK (((attempt >= 1) AND (dispatch >= 0) AND (rank >= 0)))
);
CREATE TABLE public.set_log (
    seq bigint NOT NULL,
    set_id text NOT NULL COLLATE pg_catalog."C",
    at double precision NOT NULL,
    kind text NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.set_log_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.set_log_seq_seq OWNED BY public.set_log.seq;
CREATE TABLE public.settings (
    id integer NOT NULL,
    catalogue_version bigint NOT NULL,
    body text,
    paused text,
    CONSTRAINT ck_settings_one_row CHECK ((id = 1))
);
CREATE TABLE public.specs (
    digest bytea NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.workloads (
    id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    owner text COLLATE pg_catalog."C",
    name text COLLATE pg_catalog."C",
    generation integer NOT NULL,
    spec text NOT NULL,
    manifest text NOT NULL,
    deleting boolean NOT NULL,
    expires_at double precision,
    version integer NOT NULL,
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    state text NOT NULL,
    submitted_by text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    submitter_uid bigint,
    group_name text COLLATE pg_catalog."C",
    queue text DEFAULT ''::text NOT NULL,
    CONSTRAINT ck_workloads_generation CHECK ((generation >= 1))
);
ALTER TABLE ONLY public.audit ALTER COLUMN seq SET DEFAULT nextval('public.audit_seq_seq'::regclass);
ALTER TABLE ONLY public.endpoints ALTER COLUMN seq SET DEFAULT nextval('public.endpoints_seq_seq'::regclass);
ALTER TABLE ONLY public.events ALTER COLUMN seq SET DEFAULT nextval('public.events_seq_seq'::regclass);
ALTER TABLE ONLY public.intake ALTER COLUMN seq SET DEFAULT nextval('public.intake_seq_seq'::regclass);
ALTER TABLE ONLY public.jobs ALTER COLUMN seq SET DEFAULT nextval('public.jobs_seq_seq'::regclass);
ALTER TABLE ONLY public.notifications ALTER COLUMN seq SET DEFAULT nextval('public.notifications_seq_seq'::regclass);
ALTER TABLE ONLY public.requests ALTER COLUMN id SET DEFAULT nextval('public.requests_id_seq'::regclass);
ALTER TABLE ONLY public.set_log ALTER COLUMN seq SET DEFAULT nextval('public.set_log_seq_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0046');
INSERT INTO public.attempts VALUES ('01m8b9spt1bkwhtnqfyrpxenej', 1, 'TERMINATED', 1795675708.33652, 0, 1, 1795675708.225666, 1795675708.3268645, 1795675708.3271513, 1000, 0, 0, 'Succeeded', NULL, NULL, NULL, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9sqqh9kxe5g0xpbg50e29', 1, 'ERROR', 1795675709.199636, 0, 1, 1795675709.1698256, 1795675709.1965826, 1795675709.1967127, 1000, 0, 0, 'Failed', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":3,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.00013017654418945312,"failed_at":1795675709.1967127}', '{"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","rule_index":0,"policy_revision":1,"counter":"infra/exit-3-c1f5d0f8","delay_s":1.0,"limits":[{"name":"globalMaxRetries","used":0,"limit":null},{"name":"infra/exit-3-c1f5d0f8","used":0,"limit":3}]}', 1795675710.1967127, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9sqqh9kxe5g0xpbg50e29', 2, 'ERROR', 1795675710.216798, 0, 1, 1795675710.2092822, 1795675710.2154353, 1795675710.2158844, 1000, 0, 0, 'Failed', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":3,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.00044918060302734375,"failed_at":1795675710.2158844}', '{"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","rule_index":0,"policy_revision":1,"counter":"infra/exit-3-c1f5d0f8","delay_s":2.0,"limits":[{"name":"globalMaxRetries","used":1,"limit":null},{"name":"infra/exit-3-c1f5d0f8","used":1,"limit":3}]}', 1795675712.2158844, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9sqqh9kxe5g0xpbg50e29', 3, 'ERROR', 1795675712.2317524, 0, 1, 1795675712.2207258, 1795675712.2297423, 1795675712.2298756, 1000, 0, 0, 'Failed', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":3,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.00013327598571777344,"failed_at":1795675712.2298756}', '{"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","rule_index":0,"policy_revision":1,"counter":"infra/exit-3-c1f5d0f8","delay_s":4.0,"limits":[{"name":"globalMaxRetries","used":2,"limit":null},{"name":"infra/exit-3-c1f5d0f8","used":2,"limit":3}]}', 1795675716.2298756, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9sqqh9kxe5g0xpbg50e29', 4, 'ERROR', 1795675716.2593849, 0, 1, 1795675716.244094, 1795675716.2541876, 1795675716.2543306, 1000, 0, 0, 'Failed', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":3,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0001430511474609375,"failed_at":1795675716.2543306}', '{"action":"Fail","code":"fail_policy_limit","reason":"policy retry limit exceeded (3/3)","policy":"infra","rule":"exit-3-c1f5d0f8","rule_index":0,"policy_revision":1,"limits":[{"name":"globalMaxRetries","used":3,"limit":null},{"name":"infra/exit-3-c1f5d0f8","used":3,"limit":3}]}', NULL, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t04153wzj044p748hp23-sweep-0', 1, 'TERMINATED', 1795675717.8885517, 0, 1, 1795675717.7986085, 1795675717.8869576, 1795675717.8879766, 1000, 0, 0, 'Succeeded', NULL, NULL, NULL, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t04153wzj044p748hp23-sweep-1', 1, 'TERMINATED', 1795675717.920005, 0, 1, 1795675717.7986085, 1795675717.914394, 1795675717.9188461, 1000, 0, 0, 'Succeeded', NULL, NULL, NULL, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t04153wzj044p748hp23-sweep-2', 1, 'TERMINATED', 1795675717.8958838, 0, 1, 1795675717.7986085, 1795675717.8947496, 1795675717.8955238, 1000, 0, 0, 'Succeeded', NULL, NULL, NULL, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t1j2t4y7z155je8vajw5', 1, 'TERMINATED', 1795675719.3004262, 0, 1, 1795675719.2346616, 1795675719.2908795, 1795675719.2910686, 1000, 0, 0, 'Succeeded', NULL, NULL, NULL, '', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t35ztzcbka01zjn5jxth', 1, 'TERMINATED', 1795675721.038188, 0, 1, 1795675720.9379146, 1795675720.9904919, 1795675721.038188, 1000, 0, 0, 'Cancelled', NULL, NULL, NULL, 'deleted by its job set', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t35zy58h8j155re6nr9s', 1, 'ERROR', 1795675720.9904919, 0, 1, 1795675720.9379146, 1795675720.9881191, 1795675720.9904919, 1000, 0, 0, 'Failed', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0010602474212646484,"failed_at":1795675720.9891794}', NULL, NULL, 'BackoffLimitExceeded: Job has reached the specified backoff limit', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t35zy58h8j155re6nr9s', 2, 'ERROR', 1795675721.082489, 0, 1, 1795675720.9904919, 1795675721.0467904, 1795675721.082489, 1000, 0, 0, 'Failed', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0005218982696533203,"failed_at":1795675721.0473123}', NULL, NULL, 'BackoffLimitExceeded: Job has reached the specified backoff limit', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t38n795j15nk23ceh499', 1, 'TERMINATED', 1795675721.120423, 0, 2, 1795675720.9817016, 1795675721.1104443, 1795675721.120423, 1000, 0, 0, 'Succeeded', NULL, NULL, NULL, 'Reached expected number of succeeded pods', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t35ztzcbka01zjn5jxth', 2, 'ERROR', 1795675721.082489, 0, 1, 1795675721.038188, 1795675721.0688252, 1795675721.082489, 1000, 0, 0, 'Failed', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.002203226089477539,"failed_at":1795675721.0710285}', NULL, NULL, 'BackoffLimitExceeded: Job has reached the specified backoff limit', NULL);
INSERT INTO public.attempts VALUES ('01m8b9t4ky24w5pxhpcb1tgm9x', 1, 'RUNNING', 1795675722.4324465, 0, 1, 1795675722.3663669, 1795675722.4112837, NULL, 1000, 0, 0, NULL, NULL, NULL, NULL, '', NULL);
INSERT INTO public.audit VALUES (1, 1795675707.2638576, 'root', 'create', 'retry-policy', 'infra', '127.0.0.1', '3e9618ad18327d43', 'accepted', '');
INSERT INTO public.audit VALUES (2, 1795675707.316938, 'root', 'create', 'notifier', 'pager', '127.0.0.1', '78ce167fcfac7d67', 'accepted', '');
INSERT INTO public.audit VALUES (3, 1795675707.3383758, 'root', 'create', 'queue', 'gpu', '127.0.0.1', 'c4b18e3e69142f85', 'accepted', '');
INSERT INTO public.audit VALUES (4, 1795675707.3526242, 'root', 'create', 'failure-category', 'cuda', '127.0.0.1', 'bb365ad84f220e36', 'accepted', '');
INSERT INTO public.audit VALUES (5, 1795675708.2228463, 'root', 'create', 'job', '01m8b9spt1bkwhtnqfyrpxenej', '127.0.0.1', '905d3d8a72d6fa54', 'accepted', '1 job');
INSERT INTO public.audit VALUES (6, 1795675709.1681745, 'root', 'create', 'job', '01m8b9sqqh9kxe5g0xpbg50e29', '127.0.0.1', '497b4c73933790c3', 'accepted', '1 job');
INSERT INTO public.audit VALUES (7, 1795675717.7594523, 'root', 'create', 'array', '01m8b9t04153wzj044p748hp23', '127.0.0.1', '1e2fafba98d749a8', 'accepted', '1 array');
INSERT INTO public.audit VALUES (8, 1795675719.2292938, 'root', 'create', 'job', '01m8b9t1j2t4y7z155je8vajw5', '127.0.0.1', 'd08314a455d43925', 'accepted', '1 job');
INSERT INTO public.audit VALUES (9, 1795675720.8671217, 'root', 'create', 'job-set', '01m8b9t35z3yza7b5fg4pnma73', '127.0.0.1', 'b5235b660d6305c8', 'accepted', '2 jobs');
INSERT INTO public.audit VALUES (10, 1795675720.9513216, 'root', 'create', 'job', '01m8b9t38n795j15nk23ceh499', '127.0.0.1', '15a99b7b28ab4c74', 'accepted', '1 job');
INSERT INTO public.audit VALUES (11, 1795675722.3649013, 'root', 'create', 'job', '01m8b9t4ky24w5pxhpcb1tgm9x', '127.0.0.1', '52ae0b239e24dad6', 'accepted', '1 job');
INSERT INTO public.audit VALUES (12, 1795675723.4939528, 'root', 'create', 'job', '01m8b9t5qk8jb2vyn8s1bgwtm9', '127.0.0.1', '11f07886441b2e8d', 'accepted', '1 job');
INSERT INTO public.audit VALUES (13, 1795675724.538964, 'root', 'create', 'job', '01m8b9t6qx5qsxe26jnn06d764', '127.0.0.1', '022ad72b1a7fbe21', 'accepted', '1 job');
INSERT INTO public.audit VALUES (14, 1795675725.4190936, 'root', 'hold', 'job', '01m8b9t6qx5qsxe26jnn06d764', '127.0.0.1', '7d29794cc6b89f6d', 'accepted', '');
INSERT INTO public.audit VALUES (15, 1795675726.5114794, 'root', 'create', 'token', 'ci', '127.0.0.1', '0b5b60536ad834fa', 'accepted', 'for root as admin');
INSERT INTO public.entries VALUES ('failure-category', 'cuda', '{"version":1,"spec":{"name":"cuda","rules":[{"termination_message":"CUDA error"}]}}', 'root');
INSERT INTO public.entries VALUES ('notifier', 'pager', '{"version":1,"spec":{"command":["/usr/bin/true"],"medium":"command","name":"pager"}}', 'root');
INSERT INTO public.entries VALUES ('queue', 'gpu', '{"version":1,"spec":{"name":"gpu","retry_policies":["infra"],"weight":2.0}}', 'root');
INSERT INTO public.entries VALUES ('token', 'ci', '{"version":1,"spec":{"created_at":1795675726.5114794,"created_by":"root","digest":"2de3dec218da75f0d6558f1629a1aafd26f4dd32bd785bf46286a4e64086421c","id":"6ac2ee2ddf2a","name":"ci","role":"admin","scopes":[{"kind":"job","rights":["submit"]}],"uid":0,"user":"root"}}', '');
INSERT INTO public.events VALUES (1, NULL, NULL, 'policy.created', 1, 1795675707.2638576, '{"name":"infra","revision":1}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (2, NULL, NULL, 'operator.acted', 1, 1795675707.2638576, '{"actor":"root","action":"create","kind":"retry-policy","name":"infra","origin":"127.0.0.1","request_id":"3e9618ad18327d43"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (3, NULL, NULL, 'notifier.created', 1, 1795675707.316938, '{"name":"pager"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (4, NULL, NULL, 'operator.acted', 1, 1795675707.316938, '{"actor":"root","action":"create","kind":"notifier","name":"pager","origin":"127.0.0.1","request_id":"78ce167fcfac7d67"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (5, NULL, NULL, 'queue.created', 1, 1795675707.3383758, '{"name":"gpu"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (6, NULL, NULL, 'operator.acted', 1, 1795675707.3383758, '{"actor":"root","action":"create","kind":"queue","name":"gpu","origin":"127.0.0.1","request_id":"c4b18e3e69142f85"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (7, NULL, NULL, 'category.created', 1, 1795675707.3526242, '{"name":"cuda"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (8, NULL, NULL, 'operator.acted', 1, 1795675707.3526242, '{"actor":"root","action":"create","kind":"failure-category","name":"cuda","origin":"127.0.0.1","request_id":"bb365ad84f220e36"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (9, '01m8b9spt1bkwhtnqfyrpxenej', 1, 'job.submitted', 1, 1795675708.225666, '{"name":"good","queue":"default","cpu_m":1000,"submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (10, '01m8b9spt1bkwhtnqfyrpxenej', 2, 'job.started', 1, 1795675708.2399714, '{"attempt":1,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (11, '01m8b9spt1bkwhtnqfyrpxenej', 3, 'attempt.ended', 1, 1795675708.33652, '{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675708.3268645,"exit_code":0}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (12, '01m8b9spt1bkwhtnqfyrpxenej', 4, 'job.succeeded', 1, 1795675708.33652, '{"attempt":1,"ended_at":1795675708.3271513}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (13, '01m8b9sqqh9kxe5g0xpbg50e29', 1, 'job.submitted', 1, 1795675709.1698256, '{"name":"bad","queue":"default","cpu_m":1000,"submitted_by":"root","group":"flows/7"}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (14, '01m8b9sqqh9kxe5g0xpbg50e29', 2, 'job.started', 1, 1795675709.178742, '{"attempt":1,"places":[["local","vm",1]]}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (15, '01m8b9sqqh9kxe5g0xpbg50e29', 3, 'attempt.ended', 1, 1795675709.199636, '{"attempt":1,"ending":"Failed","status":"ERROR","started_at":1795675709.1965826,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":3,"rank":0,"node":"vm","executor":"local"}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (16, '01m8b9sqqh9kxe5g0xpbg50e29', 4, 'failure.decided', 1, 1795675709.199636, '{"attempt":1,"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","policy_revision":1,"delay_s":1.0,"retry_at":1795675710.1967127,"limits":[["globalMaxRetries",0,null],["infra/exit-3-c1f5d0f8",0,3]]}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (17, '01m8b9sqqh9kxe5g0xpbg50e29', 5, 'job.retry_scheduled', 1, 1795675709.199636, '{"attempt":1,"reason":"exit code 3; retried by rule exit-3-c1f5d0f8","policy":"infra","rule":"exit-3-c1f5d0f8","delay_s":1.0,"retry_at":1795675710.1967127,"counter":"infra/exit-3-c1f5d0f8"}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (18, '01m8b9sqqh9kxe5g0xpbg50e29', 6, 'job.queued', 1, 1795675710.2092822, '{"attempt":1}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (19, '01m8b9sqqh9kxe5g0xpbg50e29', 7, 'job.started', 1, 1795675710.2092822, '{"attempt":2,"places":[["local","vm",1]]}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (20, '01m8b9sqqh9kxe5g0xpbg50e29', 8, 'attempt.ended', 1, 1795675710.216798, '{"attempt":2,"ending":"Failed","status":"ERROR","started_at":1795675710.2154353,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":3,"rank":0,"node":"vm","executor":"local"}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (21, '01m8b9sqqh9kxe5g0xpbg50e29', 9, 'failure.decided', 1, 1795675710.216798, '{"attempt":2,"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","policy_revision":1,"delay_s":2.0,"retry_at":1795675712.2158844,"limits":[["globalMaxRetries",1,null],["infra/exit-3-c1f5d0f8",1,3]]}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (22, '01m8b9sqqh9kxe5g0xpbg50e29', 10, 'job.retry_scheduled', 1, 1795675710.216798, '{"attempt":2,"reason":"exit code 3; retried by rule exit-3-c1f5d0f8","policy":"infra","rule":"exit-3-c1f5d0f8","delay_s":2.0,"retry_at":1795675712.2158844,"counter":"infra/exit-3-c1f5d0f8"}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (23, '01m8b9sqqh9kxe5g0xpbg50e29', 11, 'job.queued', 1, 1795675712.2207258, '{"attempt":2}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (24, '01m8b9sqqh9kxe5g0xpbg50e29', 12, 'job.started', 1, 1795675712.2207258, '{"attempt":3,"places":[["local","vm",1]]}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (25, '01m8b9sqqh9kxe5g0xpbg50e29', 13, 'attempt.ended', 1, 1795675712.2317524, '{"attempt":3,"ending":"Failed","status":"ERROR","started_at":1795675712.2297423,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":3,"rank":0,"node":"vm","executor":"local"}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (26, '01m8b9sqqh9kxe5g0xpbg50e29', 14, 'failure.decided', 1, 1795675712.2317524, '{"attempt":3,"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","policy_revision":1,"delay_s":4.0,"retry_at":1795675716.2298756,"limits":[["globalMaxRetries",2,null],["infra/exit-3-c1f5d0f8",2,3]]}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (27, '01m8b9sqqh9kxe5g0xpbg50e29', 15, 'job.retry_scheduled', 1, 1795675712.2317524, '{"attempt":3,"reason":"exit code 3; retried by rule exit-3-c1f5d0f8","policy":"infra","rule":"exit-3-c1f5d0f8","delay_s":4.0,"retry_at":1795675716.2298756,"counter":"infra/exit-3-c1f5d0f8"}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (28, '01m8b9sqqh9kxe5g0xpbg50e29', 16, 'job.queued', 1, 1795675716.244094, '{"attempt":3}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (29, '01m8b9sqqh9kxe5g0xpbg50e29', 17, 'job.started', 1, 1795675716.244094, '{"attempt":4,"places":[["local","vm",1]]}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (30, '01m8b9sqqh9kxe5g0xpbg50e29', 18, 'attempt.ended', 1, 1795675716.2593849, '{"attempt":4,"ending":"Failed","status":"ERROR","started_at":1795675716.2541876,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":3,"rank":0,"node":"vm","executor":"local"}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (31, '01m8b9sqqh9kxe5g0xpbg50e29', 19, 'failure.decided', 1, 1795675716.2593849, '{"attempt":4,"action":"Fail","code":"fail_policy_limit","reason":"policy retry limit exceeded (3/3)","policy":"infra","rule":"exit-3-c1f5d0f8","policy_revision":1,"delay_s":0.0,"limits":[["globalMaxRetries",3,null],["infra/exit-3-c1f5d0f8",3,3]]}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (32, '01m8b9sqqh9kxe5g0xpbg50e29', 20, 'job.failed', 1, 1795675716.2593849, '{"attempt":4,"reason":"exit code 3; 3 of 3 retries are used (infra/exit-3-c1f5d0f8)","cause":"kernel_nonzero_exit","exit_code":3,"code":"fail_policy_limit","policy":"infra","rule":"exit-3-c1f5d0f8","ended_at":1795675716.2543306}', 'flows/7', NULL, NULL, NULL);
INSERT INTO public.events VALUES (33, NULL, NULL, 'notification.delivered', 1, 1795675716.3047044, '{"id":"msg_079a224e80eba2b4ef06a2f4","to":"pager","about":"01m8b9sqqh9kxe5g0xpbg50e29","tries":1}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (34, '01m8b9t04153wzj044p748hp23-sweep-0', 1, 'job.submitted', 1, 1795675717.7986085, '{"name":"sweep-0","queue":"gpu","cpu_m":1000,"array":"01m8b9t04153wzj044p748hp23","submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (35, '01m8b9t04153wzj044p748hp23-sweep-1', 1, 'job.submitted', 1, 1795675717.7986085, '{"name":"sweep-1","queue":"gpu","cpu_m":1000,"array":"01m8b9t04153wzj044p748hp23","array_index":1,"submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (36, '01m8b9t04153wzj044p748hp23-sweep-2', 1, 'job.submitted', 1, 1795675717.7986085, '{"name":"sweep-2","queue":"gpu","cpu_m":1000,"array":"01m8b9t04153wzj044p748hp23","array_index":2,"submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (37, '01m8b9t04153wzj044p748hp23-sweep-0', 2, 'job.started', 1, 1795675717.8573928, '{"attempt":1,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (38, '01m8b9t04153wzj044p748hp23-sweep-1', 2, 'job.started', 1, 1795675717.8573928, '{"attempt":1,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (39, '01m8b9t04153wzj044p748hp23-sweep-2', 2, 'job.waiting', 1, 1795675717.8573928, '{"reason":"needs 1 cpu, the largest free node has 0"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (40, '01m8b9t04153wzj044p748hp23-sweep-0', 3, 'attempt.ended', 1, 1795675717.8885517, '{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675717.8869576,"exit_code":0}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (41, '01m8b9t04153wzj044p748hp23-sweep-0', 4, 'job.succeeded', 1, 1795675717.8885517, '{"attempt":1,"ended_at":1795675717.8879766}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (42, '01m8b9t04153wzj044p748hp23-sweep-2', 3, 'job.started', 1, 1795675717.8885517, '{"attempt":1,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (43, '01m8b9t04153wzj044p748hp23-sweep-2', 4, 'attempt.ended', 1, 1795675717.8958838, '{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675717.8947496,"exit_code":0}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (44, '01m8b9t04153wzj044p748hp23-sweep-2', 5, 'job.succeeded', 1, 1795675717.8958838, '{"attempt":1,"ended_at":1795675717.8955238}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (45, '01m8b9t04153wzj044p748hp23-sweep-1', 3, 'attempt.status_changed', 1, 1795675717.9163985, '{"attempt":1,"status":"RUNNING"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (46, '01m8b9t04153wzj044p748hp23-sweep-1', 4, 'attempt.ended', 1, 1795675717.920005, '{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675717.914394,"exit_code":0}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (47, '01m8b9t04153wzj044p748hp23-sweep-1', 5, 'job.succeeded', 1, 1795675717.920005, '{"attempt":1,"ended_at":1795675717.9188461}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (48, NULL, NULL, 'array.ended', 1, 1795675717.920005, '{"array":"01m8b9t04153wzj044p748hp23","name":"sweep","outcome":"Succeeded","succeeded":3,"failed":0,"cancelled":0,"reason":"3 of 3 tasks succeeded"}', NULL, 'root', 0, 'gpu');
INSERT INTO public.events VALUES (49, '01m8b9t1j2t4y7z155je8vajw5', 1, 'job.submitted', 1, 1795675719.2346616, '{"name":"pair","queue":"gpu","gang":2,"cpu_m":1000,"submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (50, '01m8b9t1j2t4y7z155je8vajw5', 2, 'job.started', 1, 1795675719.242331, '{"attempt":1,"places":[["local","vm",2]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (51, '01m8b9t1j2t4y7z155je8vajw5', 3, 'attempt.ended', 1, 1795675719.3004262, '{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675719.2908795,"exit_code":0}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (52, '01m8b9t1j2t4y7z155je8vajw5', 4, 'job.succeeded', 1, 1795675719.3004262, '{"attempt":1,"ended_at":1795675719.2910686}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (53, NULL, NULL, 'jobset.created', 1, 1795675720.8954077, '{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","jobs":2,"submitted_by":"root"}', NULL, 'root', 0, 'default');
INSERT INTO public.events VALUES (54, '01m8b9t35ztzcbka01zjn5jxth', 1, 'job.submitted', 1, 1795675720.8954077, '{"name":"train-w-0","queue":"default","cpu_m":1000,"job_set":"01m8b9t35z3yza7b5fg4pnma73","replicated_job":"w","submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (55, '01m8b9t35zy58h8j155re6nr9s', 1, 'job.submitted', 1, 1795675720.8954077, '{"name":"train-w-1","queue":"default","cpu_m":1000,"job_set":"01m8b9t35z3yza7b5fg4pnma73","replicated_job":"w","job_index":1,"submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (56, '01m8b9t35ztzcbka01zjn5jxth', 2, 'job.queued', 1, 1795675720.9379146, '{"attempt":1}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (57, '01m8b9t35zy58h8j155re6nr9s', 2, 'job.queued', 1, 1795675720.9379146, '{"attempt":1}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (58, '01m8b9t35ztzcbka01zjn5jxth', 3, 'job.started', 1, 1795675720.9379146, '{"attempt":1,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (59, '01m8b9t35zy58h8j155re6nr9s', 3, 'job.started', 1, 1795675720.9379146, '{"attempt":1,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (60, '01m8b9t38n795j15nk23ceh499', 1, 'job.submitted', 1, 1795675720.9817016, '{"name":"pods","queue":"default","cpu_m":1000,"submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (61, '01m8b9t35zy58h8j155re6nr9s', 4, 'attempt.ended', 1, 1795675720.9904919, '{"attempt":1,"ending":"Failed","status":"ERROR","started_at":1795675720.9881191,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":1,"rank":0,"node":"vm","executor":"local"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (62, '01m8b9t35zy58h8j155re6nr9s', 5, 'job.set_aside', 1, 1795675720.9904919, '{"attempt":1,"state":"Waiting","reason":"failed: BackoffLimitExceeded: Job has reached the specified backoff limit; its job set goes on"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (63, NULL, NULL, 'jobset.decided', 1, 1795675720.9904919, '{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","job":"train-w-1","restart":0,"job_restart":0,"action":"RestartJobSet","granted":true,"reason":"RestartJobSetFailurePolicyAction","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)","delay_s":0.0}', NULL, 'root', 0, 'default');
INSERT INTO public.events VALUES (64, NULL, NULL, 'jobset.noted', 1, 1795675720.9904919, '{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","type":"Warning","reason":"RestartJobSetFailurePolicyAction","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)"}', NULL, 'root', 0, 'default');
INSERT INTO public.events VALUES (65, NULL, NULL, 'jobset.noted', 1, 1795675720.9904919, '{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","type":"Warning","reason":"DefaultFailurePolicy","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)"}', NULL, 'root', 0, 'default');
INSERT INTO public.events VALUES (66, '01m8b9t35ztzcbka01zjn5jxth', 4, 'attempt.status_changed', 1, 1795675720.9904919, '{"attempt":1,"status":"TERMINATING"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (67, '01m8b9t35zy58h8j155re6nr9s', 6, 'job.queued', 1, 1795675720.9904919, '{"attempt":2}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (68, '01m8b9t35zy58h8j155re6nr9s', 7, 'job.started', 1, 1795675720.9904919, '{"attempt":2,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (69, '01m8b9t38n795j15nk23ceh499', 2, 'job.waiting', 1, 1795675721.0234852, '{"reason":"needs 1 cpu, the largest free node has 0"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (70, '01m8b9t35ztzcbka01zjn5jxth', 5, 'attempt.ended', 1, 1795675721.038188, '{"attempt":1,"ending":"Cancelled","status":"TERMINATED","started_at":1795675720.9904919}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (71, '01m8b9t35ztzcbka01zjn5jxth', 6, 'job.queued', 1, 1795675721.038188, '{"attempt":2}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (72, '01m8b9t35ztzcbka01zjn5jxth', 7, 'job.started', 1, 1795675721.038188, '{"attempt":2,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (73, '01m8b9t35zy58h8j155re6nr9s', 8, 'attempt.ended', 1, 1795675721.082489, '{"attempt":2,"ending":"Failed","status":"ERROR","started_at":1795675721.0467904,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":1,"rank":0,"node":"vm","executor":"local"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (74, '01m8b9t35zy58h8j155re6nr9s', 9, 'job.set_aside', 1, 1795675721.082489, '{"attempt":2,"state":"Waiting","reason":"failed: BackoffLimitExceeded: Job has reached the specified backoff limit; its job set goes on"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (75, '01m8b9t35ztzcbka01zjn5jxth', 8, 'attempt.ended', 1, 1795675721.082489, '{"attempt":2,"ending":"Failed","status":"ERROR","started_at":1795675721.0688252,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":1,"rank":0,"node":"vm","executor":"local"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (76, '01m8b9t35ztzcbka01zjn5jxth', 9, 'job.set_aside', 1, 1795675721.082489, '{"attempt":2,"state":"Waiting","reason":"failed: BackoffLimitExceeded: Job has reached the specified backoff limit; its job set goes on"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (77, NULL, NULL, 'jobset.decided', 1, 1795675721.082489, '{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","job":"train-w-0","restart":1,"job_restart":0,"action":"RestartJobSet","granted":false,"reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)","delay_s":0.0}', NULL, 'root', 0, 'default');
INSERT INTO public.events VALUES (78, NULL, NULL, 'jobset.noted', 1, 1795675721.082489, '{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","type":"Warning","reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)"}', NULL, 'root', 0, 'default');
INSERT INTO public.events VALUES (79, NULL, NULL, 'jobset.noted', 1, 1795675721.082489, '{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","type":"Normal","reason":"JobSetFailed","message":"jobset failed"}', NULL, 'root', 0, 'default');
INSERT INTO public.events VALUES (80, NULL, NULL, 'jobset.ended', 1, 1795675721.082489, '{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","outcome":"Failed","reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)"}', NULL, 'root', 0, 'default');
INSERT INTO public.events VALUES (81, '01m8b9t35ztzcbka01zjn5jxth', 10, 'job.failed', 1, 1795675721.082489, '{"attempt":2,"reason":"BackoffLimitExceeded: Job has reached the specified backoff limit"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (82, '01m8b9t35zy58h8j155re6nr9s', 10, 'job.failed', 1, 1795675721.082489, '{"attempt":2,"reason":"BackoffLimitExceeded: Job has reached the specified backoff limit"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (83, '01m8b9t38n795j15nk23ceh499', 3, 'job.started', 1, 1795675721.082489, '{"attempt":1,"dispatch":2,"places":[["local","vm",2]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (84, '01m8b9t38n795j15nk23ceh499', 4, 'attempt.ended', 1, 1795675721.120423, '{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675721.1104443,"exit_code":0}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (85, '01m8b9t38n795j15nk23ceh499', 5, 'job.succeeded', 1, 1795675721.120423, '{"attempt":1,"ended_at":1795675721.120423}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (86, '01m8b9t4ky24w5pxhpcb1tgm9x', 1, 'job.submitted', 1, 1795675722.3663669, '{"name":"long","queue":"default","cpu_m":1000,"submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (87, '01m8b9t4ky24w5pxhpcb1tgm9x', 2, 'job.started', 1, 1795675722.3926215, '{"attempt":1,"places":[["local","vm",1]]}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (88, '01m8b9t4ky24w5pxhpcb1tgm9x', 3, 'attempt.status_changed', 1, 1795675722.4324465, '{"attempt":1,"status":"RUNNING"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (89, '01m8b9t5qk8jb2vyn8s1bgwtm9', 1, 'job.submitted', 1, 1795675723.5073042, '{"name":"after","queue":"default","cpu_m":1000,"waits":"waits for job long to succeed","submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (90, '01m8b9t6qx5qsxe26jnn06d764', 1, 'job.submitted', 1, 1795675724.541863, '{"name":"held","queue":"default","cpu_m":1000,"waits":"waits for job long to end","submitted_by":"root"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (91, '01m8b9t6qx5qsxe26jnn06d764', 2, 'operator.acted', 1, 1795675725.4190936, '{"actor":"root","action":"hold","kind":"job","name":"01m8b9t6qx5qsxe26jnn06d764","origin":"127.0.0.1","request_id":"7d29794cc6b89f6d"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (92, '01m8b9t6qx5qsxe26jnn06d764', 3, 'job.held', 1, 1795675725.440757, '{"attempt":0,"reason":"held by a user"}', NULL, NULL, NULL, NULL);
INSERT INTO public.events VALUES (93, NULL, NULL, 'operator.acted', 1, 1795675726.5114794, '{"actor":"root","action":"create","kind":"token","name":"ci","origin":"127.0.0.1","request_id":"0b5b60536ad834fa","detail":"for root as admin"}', NULL, NULL, NULL, NULL);
INSERT INTO public.history VALUES ('attempt', '01m8b9spt1bkwhtnqfyrpxenej/1', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675708.2399714, 1795675708.2399714, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9spt1bkwhtnqfyrpxenej/1', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675708.2399714, 1795675708.2399714, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9spt1bkwhtnqfyrpxenej/1', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675708.2399714, 1795675708.2399714, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9spt1bkwhtnqfyrpxenej/1', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675708.2399714, 1795675708.2399714, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9spt1bkwhtnqfyrpxenej/1', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675708.33652, 1795675708.33652, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9spt1bkwhtnqfyrpxenej/1', 5, 'DetectCompletion', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675708.33652, 1795675708.33652, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9spt1bkwhtnqfyrpxenej/1', 6, 'PromoteToTerminated', 'TERMINATING', 'TERMINATED', 'SUCCESS', 1795675708.33652, 1795675708.33652, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/1', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675709.178742, 1795675709.178742, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/1', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675709.178742, 1795675709.178742, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/1', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675709.178742, 1795675709.178742, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/1', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675709.178742, 1795675709.178742, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/1', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675709.199636, 1795675709.199636, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/1', 5, 'DetectFailure', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675709.199636, 1795675709.199636, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/1', 6, 'PromoteToTerminated', 'TERMINATING', 'ERROR', 'SUCCESS', 1795675709.199636, 1795675709.199636, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/2', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675710.2092822, 1795675710.2092822, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/2', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675710.2092822, 1795675710.2092822, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/2', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675710.2092822, 1795675710.2092822, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/2', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675710.2092822, 1795675710.2092822, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/2', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675710.216798, 1795675710.216798, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/2', 5, 'DetectFailure', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675710.216798, 1795675710.216798, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/2', 6, 'PromoteToTerminated', 'TERMINATING', 'ERROR', 'SUCCESS', 1795675710.216798, 1795675710.216798, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/3', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675712.2207258, 1795675712.2207258, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/3', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675712.2207258, 1795675712.2207258, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/3', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675712.2207258, 1795675712.2207258, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/3', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675712.2207258, 1795675712.2207258, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/3', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675712.2317524, 1795675712.2317524, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/3', 5, 'DetectFailure', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675712.2317524, 1795675712.2317524, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/3', 6, 'PromoteToTerminated', 'TERMINATING', 'ERROR', 'SUCCESS', 1795675712.2317524, 1795675712.2317524, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/4', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675716.244094, 1795675716.244094, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/4', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675716.244094, 1795675716.244094, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/4', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675716.244094, 1795675716.244094, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/4', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675716.244094, 1795675716.244094, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/4', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675716.2593849, 1795675716.2593849, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/4', 5, 'DetectFailure', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675716.2593849, 1795675716.2593849, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9sqqh9kxe5g0xpbg50e29/4', 6, 'PromoteToTerminated', 'TERMINATING', 'ERROR', 'SUCCESS', 1795675716.2593849, 1795675716.2593849, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-0/1', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675717.8573928, 1795675717.8573928, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-0/1', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675717.8573928, 1795675717.8573928, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-0/1', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675717.8573928, 1795675717.8573928, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-0/1', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675717.8573928, 1795675717.8573928, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-0/1', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675717.8885517, 1795675717.8885517, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-0/1', 5, 'DetectCompletion', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675717.8885517, 1795675717.8885517, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-0/1', 6, 'PromoteToTerminated', 'TERMINATING', 'TERMINATED', 'SUCCESS', 1795675717.8885517, 1795675717.8885517, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-1/1', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675717.8573928, 1795675717.8573928, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-1/1', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675717.8573928, 1795675717.8573928, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-1/1', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675717.8573928, 1795675717.8573928, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-1/1', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675717.8573928, 1795675717.8573928, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-1/1', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675717.9163985, 1795675717.9163985, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-1/1', 5, 'DetectCompletion', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675717.920005, 1795675717.920005, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-1/1', 6, 'PromoteToTerminated', 'TERMINATING', 'TERMINATED', 'SUCCESS', 1795675717.920005, 1795675717.920005, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-2/1', 0, 'ScheduleAttempts', 'PENDING', 'PENDING', 'SKIPPED', 1795675717.8573928, 1795675717.8573928, '', 'needs 1 cpu, the largest free node has 0', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-2/1', 1, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675717.8885517, 1795675717.8885517, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-2/1', 2, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675717.8885517, 1795675717.8885517, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-2/1', 3, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675717.8885517, 1795675717.8885517, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-2/1', 4, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675717.8885517, 1795675717.8885517, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-2/1', 5, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675717.8958838, 1795675717.8958838, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-2/1', 6, 'DetectCompletion', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675717.8958838, 1795675717.8958838, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t04153wzj044p748hp23-sweep-2/1', 7, 'PromoteToTerminated', 'TERMINATING', 'TERMINATED', 'SUCCESS', 1795675717.8958838, 1795675717.8958838, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t1j2t4y7z155je8vajw5/1', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675719.242331, 1795675719.242331, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t1j2t4y7z155je8vajw5/1', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675719.242331, 1795675719.242331, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t1j2t4y7z155je8vajw5/1', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675719.242331, 1795675719.242331, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t1j2t4y7z155je8vajw5/1', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675719.242331, 1795675719.242331, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t1j2t4y7z155je8vajw5/1', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675719.3004262, 1795675719.3004262, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t1j2t4y7z155je8vajw5/1', 5, 'DetectCompletion', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675719.3004262, 1795675719.3004262, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t1j2t4y7z155je8vajw5/1', 6, 'PromoteToTerminated', 'TERMINATING', 'TERMINATED', 'SUCCESS', 1795675719.3004262, 1795675719.3004262, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t35ztzcbka01zjn5jxth/1', 0, 'PromotePodsToRunning', 'PENDING', 'RUNNING', 'SUCCESS', 1795675720.9904919, 1795675720.9904919, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t35ztzcbka01zjn5jxth/1', 1, 'StopPods', 'RUNNING', 'TERMINATING', 'SUCCESS', 1795675720.9904919, 1795675720.9904919, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t35ztzcbka01zjn5jxth/1', 2, 'EndPods', 'TERMINATING', 'TERMINATED', 'SUCCESS', 1795675721.038188, 1795675721.038188, '', 'deleted by its job set', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t35ztzcbka01zjn5jxth/2', 0, 'EndPods', 'PENDING', 'ERROR', 'SUCCESS', 1795675721.082489, 1795675721.082489, '', 'BackoffLimitExceeded: Job has reached the specified backoff limit', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t35zy58h8j155re6nr9s/1', 0, 'EndPods', 'PENDING', 'ERROR', 'SUCCESS', 1795675720.9904919, 1795675720.9904919, '', 'BackoffLimitExceeded: Job has reached the specified backoff limit', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t35zy58h8j155re6nr9s/2', 0, 'EndPods', 'PENDING', 'ERROR', 'SUCCESS', 1795675721.082489, 1795675721.082489, '', 'BackoffLimitExceeded: Job has reached the specified backoff limit', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t38n795j15nk23ceh499/1', 0, 'EndPods', 'PENDING', 'TERMINATED', 'SUCCESS', 1795675721.120423, 1795675721.120423, '', 'Reached expected number of succeeded pods', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t4ky24w5pxhpcb1tgm9x/1', 0, 'ScheduleAttempts', 'PENDING', 'SCHEDULED', 'SUCCESS', 1795675722.3926215, 1795675722.3926215, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t4ky24w5pxhpcb1tgm9x/1', 1, 'PrepareAttempts', 'SCHEDULED', 'PREPARING', 'SUCCESS', 1795675722.3926215, 1795675722.3926215, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t4ky24w5pxhpcb1tgm9x/1', 2, 'PromoteToPrepared', 'PREPARING', 'PREPARED', 'SUCCESS', 1795675722.3926215, 1795675722.3926215, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t4ky24w5pxhpcb1tgm9x/1', 3, 'StartAttempts', 'PREPARED', 'CREATING', 'SUCCESS', 1795675722.3926215, 1795675722.3926215, '', '', 1, '');
INSERT INTO public.history VALUES ('attempt', '01m8b9t4ky24w5pxhpcb1tgm9x/1', 4, 'PromoteToRunning', 'CREATING', 'RUNNING', 'SUCCESS', 1795675722.4324465, 1795675722.4324465, '', '', 1, '');
INSERT INTO public.idempotency VALUES ('6e6e634db481f4b9b3de282be4b3030c', 'eda74cdf8e6cc73d760f9e43e81151fb5fb8bed2f5a5875b818c02187625b1b0', '["01m8b9spt1bkwhtnqfyrpxenej"]', 1795675708.225666);
INSERT INTO public.idempotency VALUES ('b45fa55da0af9dc8b781c3f5c896742f', 'f68548274521c3c2a5207dd7960d4773570653d4b8e02b710082a8699d81db74', '["01m8b9sqqh9kxe5g0xpbg50e29"]', 1795675709.1698256);
INSERT INTO public.idempotency VALUES ('86b5a1620eb6c4e7cacb271e9d5ca237', 'a1a126c94bd6f088dcbda293cd45f0d5baae1ca7c496ca1e9947263c260de315', '["01m8b9t04153wzj044p748hp23"]', 1795675717.7618053);
INSERT INTO public.idempotency VALUES ('e589c14da9353d67f0031f3275e850cb', '29806ed16a5c8c0bf5e892efa2d4bab39ebba493eb9e110d34dec5b43ac95e97', '["01m8b9t1j2t4y7z155je8vajw5"]', 1795675719.2346616);
INSERT INTO public.idempotency VALUES ('6e74b81f6b39f8d2b4c8bd92db521577', 'c0e288c3e2d2510adddc50e35bca6195ff9072d249ec914f51152867cd810f90', '["01m8b9t35ztzcbka01zjn5jxth","01m8b9t35zy58h8j155re6nr9s"]', 1795675720.8954077);
INSERT INTO public.idempotency VALUES ('fa297c17cfabc5d934c1f203d081864e', '06fcd4a862003bf52bc236f57324c737ee9fb4ce3b283332249509811da7189e', '["01m8b9t38n795j15nk23ceh499"]', 1795675720.9817016);
INSERT INTO public.idempotency VALUES ('90756bb53d197d9616c644a6172fbb7a', '144a3bc8f3a3f4a785947fdeed82026fa97561b07bda25dc481ebf076b7ff60c', '["01m8b9t4ky24w5pxhpcb1tgm9x"]', 1795675722.3663669);
INSERT INTO public.idempotency VALUES ('e3618db3fef4c5d5ca34c20c5ec9d28d', 'da45a2ff321cbf246430eb8adf15c4a6506ee35416f5123aad236c80e81bb1d0', '["01m8b9t5qk8jb2vyn8s1bgwtm9"]', 1795675723.5073042);
INSERT INTO public.idempotency VALUES ('4b34726701a3f4297c08ef96bee36490', '06a2e6a81a97d3b02bcfdadedd37fede8c506c8bde6fb25d0a6a59a18773067e', '["01m8b9t6qx5qsxe26jnn06d764"]', 1795675724.541863);
INSERT INTO public.job_labels VALUES ('01m8b9t35ztzcbka01zjn5jxth', 'jobset.sigs.k8s.io/jobset-name', 'train');
INSERT INTO public.job_labels VALUES ('01m8b9t35zy58h8j155re6nr9s', 'jobset.sigs.k8s.io/jobset-name', 'train');
INSERT INTO public.job_labels VALUES ('01m8b9t35ztzcbka01zjn5jxth', 'jobset.sigs.k8s.io/replicatedjob-name', 'w');
INSERT INTO public.job_labels VALUES ('01m8b9t35zy58h8j155re6nr9s', 'jobset.sigs.k8s.io/replicatedjob-name', 'w');
INSERT INTO public.job_labels VALUES ('01m8b9sqqh9kxe5g0xpbg50e29', 'team', 'nlp');
INSERT INTO public.jobs VALUES (1, '01m8b9spt1bkwhtnqfyrpxenej', 'good', 'default', 0, 1795675708.225666, '\x662264831b1d494b9c1777108db728dd516bbe4a9021fd5b', 1, 1000, 0, 0, 'Succeeded', '', 1, 1795675708.225666, NULL, 1795675708.33652, 1795675708.2399714, 1795675708.3271513, '{}', 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'gang', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (2, '01m8b9sqqh9kxe5g0xpbg50e29', 'bad', 'default', 0, 1795675709.1698256, '\x724608f5a2ba7880f7b440e9b15a9557ed8ccfc7fda01748', 1, 1000, 0, 0, 'Failed', 'exit code 3; 3 of 3 retries are used (infra/exit-3-c1f5d0f8)', 4, 1795675716.244094, NULL, 1795675716.2593849, 1795675709.178742, 1795675716.2543306, '{"infra/exit-3-c1f5d0f8":3}', 3, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'root', 0, 'flows/7', 'gang', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (3, '01m8b9t04153wzj044p748hp23-sweep-0', 'sweep-0', 'gpu', 0, 1795675717.7986085, '\x5922ca2fc0fe4a3aac063cf2fe5022abe1d8107534e395ff', 1, 1000, 0, 0, 'Succeeded', '', 1, 1795675717.7986085, NULL, 1795675717.8885517, 1795675717.8573928, 1795675717.8879766, '{}', 0, NULL, false, '01m8b9t04153wzj044p748hp23', '', 0, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'gang', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (4, '01m8b9t04153wzj044p748hp23-sweep-1', 'sweep-1', 'gpu', 0, 1795675717.7986085, '\x7ffd4aef171a936502bd2de0be74831c883a438dbb291f69', 1, 1000, 0, 0, 'Succeeded', '', 1, 1795675717.7986085, NULL, 1795675717.920005, 1795675717.8573928, 1795675717.9188461, '{}', 0, NULL, false, '01m8b9t04153wzj044p748hp23', '', 1, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'gang', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (5, '01m8b9t04153wzj044p748hp23-sweep-2', 'sweep-2', 'gpu', 0, 1795675717.7986085, '\x9d7142c7bba261594585ba24c54464c1a66583806f038667', 1, 1000, 0, 0, 'Succeeded', '', 1, 1795675717.7986085, NULL, 1795675717.8958838, 1795675717.8885517, 1795675717.8955238, '{}', 0, NULL, false, '01m8b9t04153wzj044p748hp23', '', 2, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'gang', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (6, '01m8b9t1j2t4y7z155je8vajw5', 'pair', 'gpu', 0, 1795675719.2346616, '\x48e715881d00576571a26d1f0d9e013b2e344a5ee00961d6', 2, 1000, 0, 0, 'Succeeded', '', 1, 1795675719.2346616, NULL, 1795675719.3004262, 1795675719.242331, 1795675719.2910686, '{}', 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'gang', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (7, '01m8b9t35ztzcbka01zjn5jxth', 'train-w-0', 'default', 0, 1795675720.8954077, '\x457158cf6dae0fe01b4359a881d9b58a08070afc1178ccda', 1, 1000, 0, 0, 'Failed', 'BackoffLimitExceeded: Job has reached the specified backoff limit', 2, 1795675721.038188, NULL, 1795675721.082489, 1795675720.9379146, 1795675721.082489, '{}', 0, NULL, false, '01m8b9t35z3yza7b5fg4pnma73', 'w', 0, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'kubejob', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (8, '01m8b9t35zy58h8j155re6nr9s', 'train-w-1', 'default', 0, 1795675720.8954077, '\x457158cf6dae0fe01b4359a881d9b58a08070afc1178ccda', 1, 1000, 0, 0, 'Failed', 'BackoffLimitExceeded: Job has reached the specified backoff limit', 2, 1795675720.9904919, NULL, 1795675721.082489, 1795675720.9379146, 1795675721.082489, '{}', 0, NULL, false, '01m8b9t35z3yza7b5fg4pnma73', 'w', 1, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'kubejob', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (9, '01m8b9t38n795j15nk23ceh499', 'pods', 'default', 0, 1795675720.9817016, '\x2772d757cce8d371345abce227e4b6e1bb4c54c291434c5a', 1, 1000, 0, 0, 'Succeeded', '', 1, 1795675720.9817016, NULL, 1795675721.120423, 1795675721.082489, 1795675721.120423, '{}', 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'kubejob', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (10, '01m8b9t4ky24w5pxhpcb1tgm9x', 'long', 'default', 0, 1795675722.3663669, '\xd532ddb49776bc4e5d50da48938c9ec367ff48768404028b', 1, 1000, 0, 0, 'Running', '', 1, 1795675722.3663669, NULL, 1795675722.3926215, 1795675722.3926215, NULL, '{}', 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'gang', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (11, '01m8b9t5qk8jb2vyn8s1bgwtm9', 'after', 'default', 0, 1795675723.5073042, '\xe6c9e3e93d567d6bf8ec3b2e6e70e48cf9b6bd521b93a034', 1, 1000, 0, 0, 'Waiting', 'waits for job long to succeed', 0, 1795675723.5073042, NULL, 1795675723.5073042, NULL, NULL, '{}', 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'gang', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (12, '01m8b9t6qx5qsxe26jnn06d764', 'held', 'default', 0, 1795675724.541863, '\x2979f1bb957108472285acb41e4ef7347967113d3b814ce6', 1, 1000, 0, 0, 'Held', 'held by a user', 0, 1795675724.541863, NULL, 1795675725.440757, NULL, NULL, '{}', 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'root', 0, NULL, 'gang', NULL, NULL, NULL);
INSERT INTO public.leadership VALUES (1, 1, 'the holdfast on vm, data directory /srv/holdfast/data (46bc3415), process 14701-6541c4d7', 1795675736.0430956, false);
INSERT INTO public.nodes VALUES ('local', 'vm', 2000, 25276514304, 0, '{"kubernetes.io/hostname":"vm","holdfast.dev/memory":"cgroup-v1","holdfast.dev/pids":"cgroup-v1","holdfast.dev/containment":"cgroup-v1"}', 1795675735.4883564, 'process', '', NULL, '[]', NULL);
INSERT INTO public.notifications VALUES (1, 'msg_079a224e80eba2b4ef06a2f4', 'pager', '01m8b9sqqh9kxe5g0xpbg50e29', 1795675716.2593849, '{"event":"job.failed","kind":"job","id":"01m8b9sqqh9kxe5g0xpbg50e29","name":"bad","at":1795675716.2593849,"state":"Failed","queue":"default","submitted_by":"root","reason":"exit code 3; 3 of 3 retries are used (infra/exit-3-c1f5d0f8)","cause":"kernel_nonzero_exit","failure":"exit code 3","exit_code":3,"attempts":4,"nodes":["vm"],"started_at":1795675709.178742,"submitted_at":1795675709.1698256,"complete":true}', 'Delivered', 1, 1795675716.2593849, 1795675716.2593849, 1795675716.3047044, '');
INSERT INTO public.policies VALUES ('infra', 1, 'root');
INSERT INTO public.policy_revisions VALUES ('infra', 1, '{"version":1,"spec":{"name":"infra","retry_limit":3,"rules":[{"action":"Retry","exit_codes":{"operator":"In","values":[3]},"name":"exit-3-c1f5d0f8"}]}}');
INSERT INTO public.runs VALUES ('01m8b9spt1bkwhtnqfyrpxenej-1-0-1', '01m8b9spt1bkwhtnqfyrpxenej', 1, 1, 0, 'TERMINATED', 1795675708.33652, 'local', 'vm', 1000, 0, 0, 1795675708.3268645, 1795675708.3271513, '{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675708.3268645,"ended_at":1795675708.3271513,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9sqqh9kxe5g0xpbg50e29-1-0-1', '01m8b9sqqh9kxe5g0xpbg50e29', 1, 1, 0, 'ERROR', 1795675709.199636, 'local', 'vm', 1000, 0, 0, 1795675709.1965826, 1795675709.1967127, '{"containers":[{"exit_code":3,"reason":"Error"}],"conditions":[],"started_at":1795675709.1965826,"ended_at":1795675709.1967127,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9sqqh9kxe5g0xpbg50e29-2-0-1', '01m8b9sqqh9kxe5g0xpbg50e29', 2, 1, 0, 'ERROR', 1795675710.216798, 'local', 'vm', 1000, 0, 0, 1795675710.2154353, 1795675710.2158844, '{"containers":[{"exit_code":3,"reason":"Error"}],"conditions":[],"started_at":1795675710.2154353,"ended_at":1795675710.2158844,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9sqqh9kxe5g0xpbg50e29-3-0-1', '01m8b9sqqh9kxe5g0xpbg50e29', 3, 1, 0, 'ERROR', 1795675712.2317524, 'local', 'vm', 1000, 0, 0, 1795675712.2297423, 1795675712.2298756, '{"containers":[{"exit_code":3,"reason":"Error"}],"conditions":[],"started_at":1795675712.2297423,"ended_at":1795675712.2298756,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9sqqh9kxe5g0xpbg50e29-4-0-1', '01m8b9sqqh9kxe5g0xpbg50e29', 4, 1, 0, 'ERROR', 1795675716.2593849, 'local', 'vm', 1000, 0, 0, 1795675716.2541876, 1795675716.2543306, '{"containers":[{"exit_code":3,"reason":"Error"}],"conditions":[],"started_at":1795675716.2541876,"ended_at":1795675716.2543306,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t04153wzj044p748hp23-sweep-0-1-0-1', '01m8b9t04153wzj044p748hp23-sweep-0', 1, 1, 0, 'TERMINATED', 1795675717.8885517, 'local', 'vm', 1000, 0, 0, 1795675717.8869576, 1795675717.8879766, '{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675717.8869576,"ended_at":1795675717.8879766,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t04153wzj044p748hp23-sweep-1-1-0-1', '01m8b9t04153wzj044p748hp23-sweep-1', 1, 1, 0, 'TERMINATED', 1795675717.920005, 'local', 'vm', 1000, 0, 0, 1795675717.914394, 1795675717.9188461, '{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675717.914394,"ended_at":1795675717.9188461,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t04153wzj044p748hp23-sweep-2-1-0-1', '01m8b9t04153wzj044p748hp23-sweep-2', 1, 1, 0, 'TERMINATED', 1795675717.8958838, 'local', 'vm', 1000, 0, 0, 1795675717.8947496, 1795675717.8955238, '{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675717.8947496,"ended_at":1795675717.8955238,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t1j2t4y7z155je8vajw5-1-0-1', '01m8b9t1j2t4y7z155je8vajw5', 1, 1, 0, 'TERMINATED', 1795675719.3004262, 'local', 'vm', 1000, 0, 0, 1795675719.2908795, 1795675719.2910686, '{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675719.2908795,"ended_at":1795675719.2910686,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t1j2t4y7z155je8vajw5-1-1-1', '01m8b9t1j2t4y7z155je8vajw5', 1, 1, 1, 'TERMINATED', 1795675719.2872803, 'local', 'vm', 1000, 0, 0, 1795675719.2835822, 1795675719.2837336, '{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675719.2835822,"ended_at":1795675719.2837336,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t35ztzcbka01zjn5jxth-1-0-1', '01m8b9t35ztzcbka01zjn5jxth', 1, 1, 0, 'ERROR', 1795675721.038188, 'local', 'vm', 1000, 0, 0, 1795675720.9880745, 1795675720.9900143, '{"containers":[{"exit_code":1,"reason":"Error"}],"conditions":[],"started_at":1795675720.9880745,"ended_at":1795675720.9900143,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t35zy58h8j155re6nr9s-1-0-1', '01m8b9t35zy58h8j155re6nr9s', 1, 1, 0, 'ERROR', 1795675720.9904919, 'local', 'vm', 1000, 0, 0, 1795675720.9881191, 1795675720.9891794, '{"containers":[{"exit_code":1,"reason":"Error"}],"conditions":[],"started_at":1795675720.9881191,"ended_at":1795675720.9891794,"node":"vm","executor":"local"}', '', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0010602474212646484,"failed_at":1795675720.9891794}', '{"action":"Fail","code":"fail_policy_limit","reason":"Job has reached the specified backoff limit","delay_s":0.0,"limits":[{"name":"backoffLimit","used":0,"limit":0}]}', 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t35zy58h8j155re6nr9s-2-0-1', '01m8b9t35zy58h8j155re6nr9s', 2, 1, 0, 'ERROR', 1795675721.082489, 'local', 'vm', 1000, 0, 0, 1795675721.0467904, 1795675721.0473123, '{"containers":[{"exit_code":1,"reason":"Error"}],"conditions":[],"started_at":1795675721.0467904,"ended_at":1795675721.0473123,"node":"vm","executor":"local"}', '', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0005218982696533203,"failed_at":1795675721.0473123}', '{"action":"Fail","code":"fail_policy_limit","reason":"Job has reached the specified backoff limit","delay_s":0.0,"limits":[{"name":"backoffLimit","used":0,"limit":0}]}', 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t35ztzcbka01zjn5jxth-2-0-1', '01m8b9t35ztzcbka01zjn5jxth', 2, 1, 0, 'ERROR', 1795675721.082489, 'local', 'vm', 1000, 0, 0, 1795675721.0688252, 1795675721.0710285, '{"containers":[{"exit_code":1,"reason":"Error"}],"conditions":[],"started_at":1795675721.0688252,"ended_at":1795675721.0710285,"node":"vm","executor":"local"}', '', '{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.002203226089477539,"failed_at":1795675721.0710285}', '{"action":"Fail","code":"fail_policy_limit","reason":"Job has reached the specified backoff limit","delay_s":0.0,"limits":[{"name":"backoffLimit","used":0,"limit":0}]}', 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t38n795j15nk23ceh499-1-0-1', '01m8b9t38n795j15nk23ceh499', 1, 1, 0, 'TERMINATED', 1795675721.120423, 'local', 'vm', 1000, 0, 0, 1795675721.1104443, 1795675721.1122587, '{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675721.1104443,"ended_at":1795675721.1122587,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t38n795j15nk23ceh499-1-1-2', '01m8b9t38n795j15nk23ceh499', 1, 2, 1, 'TERMINATED', 1795675721.120423, 'local', 'vm', 1000, 0, 0, 1795675721.1115246, 1795675721.1116502, '{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675721.1115246,"ended_at":1795675721.1116502,"node":"vm","executor":"local"}', '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01m8b9t4ky24w5pxhpcb1tgm9x-1-0-1', '01m8b9t4ky24w5pxhpcb1tgm9x', 1, 1, 0, 'RUNNING', 1795675722.4324465, 'local', 'vm', 1000, 0, 0, 1795675722.4112837, NULL, NULL, '', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.set_log VALUES (1, '01m8b9t35z3yza7b5fg4pnma73', 1795675720.9904919, 'decision', '{"job":"train-w-1","attempt":[0,0],"action":"RestartJobSet","granted":true,"reason":"RestartJobSetFailurePolicyAction","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)","limits":[{"name":"maxRestarts","used":0,"limit":1}],"delay_s":0.0}');
INSERT INTO public.set_log VALUES (2, '01m8b9t35z3yza7b5fg4pnma73', 1795675720.9904919, 'event', '{"type":"Warning","reason":"RestartJobSetFailurePolicyAction","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)"}');
INSERT INTO public.set_log VALUES (3, '01m8b9t35z3yza7b5fg4pnma73', 1795675720.9904919, 'event', '{"type":"Warning","reason":"DefaultFailurePolicy","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)"}');
INSERT INTO public.set_log VALUES (4, '01m8b9t35z3yza7b5fg4pnma73', 1795675721.082489, 'decision', '{"job":"train-w-0","attempt":[1,0],"action":"RestartJobSet","granted":false,"reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)","limits":[{"name":"maxRestarts","used":1,"limit":1}],"delay_s":0.0}');
INSERT INTO public.set_log VALUES (5, '01m8b9t35z3yza7b5fg4pnma73', 1795675721.082489, 'event', '{"type":"Warning","reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)"}');
INSERT INTO public.set_log VALUES (6, '01m8b9t35z3yza7b5fg4pnma73', 1795675721.082489, 'event', '{"type":"Normal","reason":"JobSetFailed","message":"jobset failed"}');
INSERT INTO public.settings VALUES (1, 5, NULL, NULL);
INSERT INTO public.specs VALUES ('\x662264831b1d494b9c1777108db728dd516bbe4a9021fd5b', '{"version":1,"spec":{"command":["true"],"name":"good","working_dir":"/srv/holdfast"}}');
INSERT INTO public.specs VALUES ('\x724608f5a2ba7880f7b440e9b15a9557ed8ccfc7fda01748', '{"version":1,"spec":{"command":["sh","-c","exit 3"],"group":"flows/7","labels":{"team":"nlp"},"name":"bad","notify":[{"on":["failure"],"to":"pager"}],"retry_policies":["infra"],"working_dir":"/srv/holdfast"}}');
INSERT INTO public.specs VALUES ('\x5922ca2fc0fe4a3aac063cf2fe5022abe1d8107534e395ff', '{"version":1,"spec":{"command":["true"],"env":{"HOLDFAST_ARRAY_INDEX":"0","HOLDFAST_ARRAY_NAME":"sweep","HOLDFAST_ARRAY_SIZE":"3"},"name":"sweep-0","queue":"gpu","working_dir":"/srv/holdfast"}}');
INSERT INTO public.specs VALUES ('\x7ffd4aef171a936502bd2de0be74831c883a438dbb291f69', '{"version":1,"spec":{"command":["true"],"env":{"HOLDFAST_ARRAY_INDEX":"1","HOLDFAST_ARRAY_NAME":"sweep","HOLDFAST_ARRAY_SIZE":"3"},"name":"sweep-1","queue":"gpu","working_dir":"/srv/holdfast"}}');
INSERT INTO public.specs VALUES ('\x9d7142c7bba261594585ba24c54464c1a66583806f038667', '{"version":1,"spec":{"command":["true"],"env":{"HOLDFAST_ARRAY_INDEX":"2","HOLDFAST_ARRAY_NAME":"sweep","HOLDFAST_ARRAY_SIZE":"3"},"name":"sweep-2","queue":"gpu","working_dir":"/srv/holdfast"}}');
INSERT INTO public.specs VALUES ('\x48e715881d00576571a26d1f0d9e013b2e344a5ee00961d6', '{"version":1,"spec":{"command":["true"],"gang":2,"name":"pair","queue":"gpu","working_dir":"/srv/holdfast"}}');
INSERT INTO public.specs VALUES ('\x457158cf6dae0fe01b4359a881d9b58a08070afc1178ccda', '{"version":1,"spec":{"command":["false"],"grace_s":30.0,"labels":{"jobset.sigs.k8s.io/jobset-name":"train","jobset.sigs.k8s.io/replicatedjob-name":"w"},"name":"train-w"}}');
INSERT INTO public.specs VALUES ('\x2772d757cce8d371345abce227e4b6e1bb4c54c291434c5a', '{"version":1,"spec":{"command":["true"],"grace_s":30.0,"kube":{"program":{"command":["true"],"container":"c","image":"none"},"raw":{"backoffLimit":1,"completions":2,"parallelism":2,"template":{"spec":{"containers":[{"command":["true"],"image":"none","name":"c"}],"restartPolicy":"Never"}}},"spec":{"backoff_limit":1,"completions":2,"parallelism":2}},"name":"pods"}}');
INSERT INTO public.specs VALUES ('\xd532ddb49776bc4e5d50da48938c9ec367ff48768404028b', '{"version":1,"spec":{"command":["sleep","600"],"name":"long","working_dir":"/srv/holdfast"}}');
INSERT INTO public.specs VALUES ('\xe6c9e3e93d567d6bf8ec3b2e6e70e48cf9b6bd521b93a034', '{"version":1,"spec":{"after":[{"id":"01m8b9t4ky24w5pxhpcb1tgm9x","name":"long","target":"job"}],"command":["true"],"name":"after","working_dir":"/srv/holdfast"}}');
INSERT INTO public.specs VALUES ('\x2979f1bb957108472285acb41e4ef7347967113d3b814ce6', '{"version":1,"spec":{"after":[{"condition":"ended","id":"01m8b9t4ky24w5pxhpcb1tgm9x","name":"long","target":"job"}],"command":["true"],"name":"held","working_dir":"/srv/holdfast"}}');
INSERT INTO public.workloads VALUES ('01m8b9t04153wzj044p748hp23', 'array', NULL, 'sweep', 1, '{"version":1,"spec":{"indexes":[{"first":0,"last":2}],"job":{"command":["true"],"name":"sweep","queue":"gpu","working_dir":"/srv/holdfast"}}}', '{"apiVersion": "holdfast.dev/v1", "kind": "Job", "metadata": {"name": "sweep"}, "spec": {"array": {"indices": "0-2"}, "command": ["true"], "queue": "gpu", "workingDir": "/srv/holdfast"}}', false, NULL, 1, 1795675717.7618053, 1795675717.920005, '{"version":1,"state":{"made":3,"succeeded":3,"stopping":"Succeeded","status":"Succeeded","reason":"3 of 3 tasks succeeded","ended_at":1795675717.920005}}', 'root', 0, NULL, 'gpu');
INSERT INTO public.workloads VALUES ('01m8b9t35z3yza7b5fg4pnma73', 'jobset', NULL, 'train', 1, '{"version":1,"spec":{"failure":{"max_restarts":1},"name":"train","replicated_jobs":[{"job":{"backoff_limit":0,"mode":"Indexed"},"name":"w","program":{"command":["false"],"container":"c","image":"none"},"replicas":2,"template":{"spec":{"backoffLimit":0,"completions":1,"parallelism":1,"template":{"spec":{"containers":[{"command":["false"],"image":"none","name":"c"}],"restartPolicy":"Never"}}}}}]}}', '{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train"},"spec":{"failurePolicy":{"maxRestarts":1},"replicatedJobs":[{"name":"w","replicas":2,"template":{"spec":{"backoffLimit":0,"completions":1,"parallelism":1,"template":{"spec":{"containers":[{"command":["false"],"image":"none","name":"c"}],"restartPolicy":"Never"}}}}}]}}', false, NULL, 1, 1795675720.8954077, 1795675721.082489, '{"version":1,"state":{"restarts":1,"restarts_counted":1,"rule_restarts":{"default":1},"blamed":{"w":1},"terminal":"Failed","conditions":[{"type":"RestartingJobSet","status":false,"reason":"JobSetFailed","message":"jobset failed","since":1795675721.082489},{"type":"Failed","status":true,"reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)","since":1795675721.082489}],"groups":[{"name":"w","failed":2}],"started_at":1795675720.9379146,"ended_at":1795675721.082489},"lenient":true}', 'root', 0, NULL, 'default');
INSERT INTO public.workloads VALUES ('01m8b9t35ztzcbka01zjn5jxth', 'kubejob', '01m8b9t35z3yza7b5fg4pnma73', NULL, 1, '', '', false, NULL, 1, 1795675720.8954077, 0, '{"version":1,"restart":1,"parallelism":1,"completions":1,"state":{"started_at":1795675721.038188,"failed":1,"counted":["train-w-0-0-1"],"conditions":[{"type":"FailureTarget","status":true,"reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","since":1795675721.082489},{"type":"Failed","status":true,"reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","since":1795675721.082489}],"backoff":{"failures":1,"last_failure_at":1795675721.0710285},"finished_at":1795675721.082489}}', '', NULL, NULL, '');
INSERT INTO public.workloads VALUES ('01m8b9t35zy58h8j155re6nr9s', 'kubejob', '01m8b9t35z3yza7b5fg4pnma73', NULL, 1, '', '', false, NULL, 1, 1795675720.8954077, 0, '{"version":1,"restart":1,"parallelism":1,"completions":1,"state":{"started_at":1795675720.9904919,"failed":1,"counted":["train-w-1-0-1"],"conditions":[{"type":"FailureTarget","status":true,"reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","since":1795675721.082489},{"type":"Failed","status":true,"reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","since":1795675721.082489}],"backoff":{"failures":1,"last_failure_at":1795675721.0473123},"finished_at":1795675721.082489}}', '', NULL, NULL, '');
INSERT INTO public.workloads VALUES ('01m8b9t38n795j15nk23ceh499', 'kubejob', NULL, NULL, 1, '', '', false, NULL, 1, 1795675720.9817016, 0, '{"version":1,"state":{"started_at":1795675721.0234852,"succeeded":2,"counted":["pods-1-2","pods-0-1"],"conditions":[{"type":"SuccessCriteriaMet","status":true,"reason":"CompletionsReached","message":"Reached expected number of succeeded pods","since":1795675721.120423},{"type":"Complete","status":true,"reason":"CompletionsReached","message":"Reached expected number of succeeded pods","since":1795675721.120423}],"finished_at":1795675721.120423}}', '', NULL, NULL, '');
SELECT pg_catalog.setval('public.audit_seq_seq', 15, true);
SELECT pg_catalog.setval('public.endpoints_seq_seq', 1, false);
SELECT pg_catalog.setval('public.events_seq_seq', 93, true);
SELECT pg_catalog.setval('public.intake_seq_seq', 1, true);
SELECT pg_catalog.setval('public.jobs_seq_seq', 12, true);
SELECT pg_catalog.setval('public.notifications_seq_seq', 1, true);
SELECT pg_catalog.setval('public.requests_id_seq', 1, true);
SELECT pg_catalog.setval('public.set_log_seq_seq', 6, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT pk_attempts PRIMARY KEY (job_id, number);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT pk_audit PRIMARY KEY (seq);
ALTER TABLE ONLY public.entries
    ADD CONSTRAINT pk_entries PRIMARY KEY (kind, name);
ALTER TABLE ONLY public.discards
    ADD CONSTRAINT pk_discards PRIMARY KEY (place, job_id);
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT pk_endpoints PRIMARY KEY (seq);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT pk_events PRIMARY KEY (seq);
ALTER TABLE ONLY public.history
    ADD CONSTRAINT pk_history PRIMARY KEY (kind, id, seq);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT pk_idempotency PRIMARY KEY (key);
ALTER TABLE ONLY public.intake
    ADD CONSTRAINT pk_intake PRIMARY KEY (seq);
ALTER TABLE ONLY public.job_labels
    ADD CONSTRAINT pk_job_labels PRIMARY KEY (job_id, key);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT pk_jobs PRIMARY KEY (seq);
ALTER TABLE ONLY public.leadership
    ADD CONSTRAINT pk_leadership PRIMARY KEY (id);
ALTER TABLE ONLY public.names
    ADD CONSTRAINT pk_names PRIMARY KEY (name);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT pk_nodes PRIMARY KEY (executor, name);
ALTER TABLE ONLY public.notifications
    ADD CONSTRAINT pk_notifications PRIMARY KEY (seq);
ALTER TABLE ONLY public.places
    ADD CONSTRAINT pk_places PRIMARY KEY (id);
ALTER TABLE ONLY public.policies
    ADD CONSTRAINT pk_policies PRIMARY KEY (name);
ALTER TABLE ONLY public.policy_revisions
    ADD CONSTRAINT pk_policy_revisions PRIMARY KEY (name, revision);
ALTER TABLE ONLY public.quarantine
    ADD CONSTRAINT pk_quarantine PRIMARY KEY (id);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT pk_requests PRIMARY KEY (id);
ALTER TABLE ONLY public.reruns
    ADD CONSTRAINT pk_reruns PRIMARY KEY (root, task, number);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT pk_runs PRIMARY KEY (uid);
ALTER TABLE ONLY public.set_log
    ADD CONSTRAINT pk_set_log PRIMARY KEY (seq);
ALTER TABLE ONLY public.settings
    ADD CONSTRAINT pk_settings PRIMARY KEY (id);
ALTER TABLE ONLY public.specs
    ADD CONSTRAINT pk_specs PRIMARY KEY (digest);
ALTER TABLE ONLY public.workloads
    ADD CONSTRAINT pk_workloads PRIMARY KEY (id);
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT uq_endpoints_id UNIQUE (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT uq_events_job_id_job_seq UNIQUE (job_id, job_seq);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT uq_jobs_id UNIQUE (id);
ALTER TABLE ONLY public.notifications
    ADD CONSTRAINT uq_notifications_id UNIQUE (id);
ALTER TABLE ONLY public.workloads
    ADD CONSTRAINT uq_workloads_kind_name UNIQUE (kind, name);
CREATE INDEX ix_attempts_active ON public.attempts USING btree (job_id) WHERE ((status <> 'CANCELLED'::text) AND (status <> 'ERROR'::text) AND (status <> 'TERMINATED'::text));
CREATE INDEX ix_endpoints_job_id ON public.endpoints USING btree (job_id);
CREATE INDEX ix_endpoints_system_name ON public.endpoints USING btree (system, name);
CREATE INDEX ix_events_group_name_seq ON public.events USING btree (group_name, seq) WHERE (group_name IS NOT NULL);
CREATE INDEX ix_intake_queue_submitted_by ON public.intake USING btree (queue, submitted_by);
CREATE INDEX ix_job_labels_key_value ON public.job_labels USING btree (key, value);
CREATE INDEX ix_jobs_group_name_seq ON public.jobs USING btree (group_name, seq) WHERE (group_name IS NOT NULL);
CREATE INDEX ix_jobs_name ON public.jobs USING btree (name);
CREATE INDEX ix_jobs_of_sets ON public.jobs USING btree (set_id, seq) WHERE (set_id IS NOT NULL);
CREATE INDEX ix_jobs_spec ON public.jobs USING btree (spec);
CREATE INDEX ix_jobs_state_seq ON public.jobs USING btree (state, seq);
CREATE INDEX ix_jobs_submitted_by_seq ON public.jobs USING btree (submitted_by, seq);
CREATE INDEX ix_jobs_waiting ON public.jobs USING btree (queue, submitted_by) WHERE ((state <> 'Cancelled'::text) AND (state <> 'Failed'::text) AND (state <> 'Running'::text) AND (state <> 'Succeeded'::text));
CREATE INDEX ix_names_job_id ON public.names USING btree (job_id);
CREATE INDEX ix_notifications_about ON public.notifications USING btree (about);
CREATE INDEX ix_notifications_settled ON public.notifications USING btree (settled_at) WHERE (settled_at IS NOT NULL);
CREATE INDEX ix_notifications_waiting ON public.notifications USING btree (next_at) WHERE (state = 'Waiting'::text);
CREATE INDEX ix_reruns_array ON public.reruns USING btree ("array");
CREATE INDEX ix_runs_active ON public.runs USING btree (job_id) WHERE ((status <> 'CANCELLED'::text) AND (status <> 'ERROR'::text) AND (status <> 'TERMINATED'::text));
CREATE INDEX ix_runs_job_id ON public.runs USING btree (job_id);
CREATE INDEX ix_set_log_set_id_seq ON public.set_log USING btree (set_id, seq);
CREATE INDEX ix_workloads_expiring ON public.workloads USING btree (expires_at) WHERE (expires_at IS NOT NULL);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT fk_attempts_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT fk_endpoints_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT fk_events_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_labels
    ADD CONSTRAINT fk_job_labels_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT fk_jobs_spec FOREIGN KEY (spec) REFERENCES public.specs(digest);
ALTER TABLE ONLY public.names
    ADD CONSTRAINT fk_names_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policies
    ADD CONSTRAINT fk_policies_name_revision FOREIGN KEY (name, revision) REFERENCES public.policy_revisions(name, revision);
ALTER TABLE ONLY public.reruns
    ADD CONSTRAINT fk_reruns_array FOREIGN KEY ("array") REFERENCES public.workloads(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.set_log
    ADD CONSTRAINT fk_set_log_set_id FOREIGN KEY (set_id) REFERENCES public.workloads(id) ON DELETE CASCADE;
