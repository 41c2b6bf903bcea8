"""Tells people: takes notifications out of the outbox and delivers them by webhook, e-mail, program or Apprise."""
