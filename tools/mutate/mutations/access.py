"""Who may do what, and what others see."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_TOKENS, _WHOSE = "integration/test_api_tokens.py", "integration/test_whose_it_is.py"
_UNIT, _PEOPLE = "unit/test_rights.py", "integration/test_rights_of_people.py"

_ISSUER, _CLAIMS = "integration/test_oidc.py", "unit/test_oidc_claims.py"

MUTATIONS = (
    Mutation(
        "everybody reads everybody's notifications",
        "service/operations/notifiers.py",
        "return where if everybodys else evolve(where, of=caller.principal)",
        "return where",
        ("integration/test_notifications_of_people.py",),
    ),
    Mutation(
        "a job may name anybody's secret",
        "service/submit.py",
        "withheld_secrets(item.spec, self.secrets, self.by) if item.spec.secrets else None",
        "None",
        ("unit/test_secrets_of_people.py",),
    ),
    Mutation(
        "a run gets a secret that is another's by then",
        "storage/secrets.py",
        "if not self._admits(name, owner, user, os.fstat(file.fileno())):",
        "if False:",
        ("unit/test_secrets_of_people.py",),
    ),
    Mutation(
        "a secret that is being replaced may be given to the one before",
        "storage/secrets.py",
        "if self._owner(name) != owner:",
        "if False:",
        ("unit/test_secrets_of_people.py",),
    ),
    Mutation(
        "a secret of an account is that of the next account of its name, too",
        "storage/secrets.py",
        "or number == str(user.uid)",
        "or True",
        ("unit/test_secrets_of_people.py",),
    ),
    Mutation(
        "tokens of every issuer are taken",
        "domain/access/claims.py",
        "if issuer != trust.issuer:",
        "if not issuer:",
        (_CLAIMS,),
    ),
    Mutation(
        "tokens that were made for other applications are taken",
        "domain/access/claims.py",
        "if trust.audience not in (audience if isinstance(audience, list) else [audience]):",
        "if not audience:",
        (_CLAIMS,),
    ),
    Mutation(
        "tokens are taken after they have expired",
        "domain/access/claims.py",
        "if now >= ends + LEEWAY_S:",
        "if ends <= 0:",
        (_CLAIMS,),
    ),
    Mutation(
        "an address that nobody has verified names its bearer",
        "domain/access/claims.py",
        'if trust.user_claim == "email" and claims.get("email_verified", True) is not True:',
        "if not trust.user_claim:",
        (_CLAIMS,),
    ),
    Mutation(
        "a token's signature is not looked at",
        "app/entrance/oidc/bearers.py",
        "if self._checked.get(digest) is not key:",
        "if self._checked is None:",
        (_ISSUER,),
    ),
    Mutation(
        "tokens that were signed with a key that is gone stay good",
        "app/entrance/oidc/bearers.py",
        "key = await self._keys.of(parts.kid, parts.algorithm)",
        "key = next(iter(self._checked.values()), None) or await self._keys.of(parts.kid, parts.algorithm)",
        (_ISSUER,),
    ),
    Mutation(
        "each made-up name of a key has the issuer asked",
        "app/entrance/oidc/keys.py",
        "if len(self._begun) == _MOST_READS and now - self._begun[0] < _WITHIN_S:",
        "if len(self._begun) > _MOST_READS:",
        (_ISSUER,),
    ),
    Mutation(
        "a short key of an issuer is used",
        "app/entrance/oidc/keys.py",
        'return key if given["kty"] != "RSA" or key.key.key_size >= _SHORTEST_RSA else None',
        "return key",
        (_ISSUER,),
    ),
    Mutation(
        "a name of the issuer's may become root",
        "app/entrance/oidc/bearers.py",
        "return principal if account is None or account.uid == ROOT_UID else evolve(principal, uid=account.uid)",
        "return principal if account is None else evolve(principal, uid=account.uid)",
        (_ISSUER,),
    ),
    Mutation(
        "an operation whose caller may do nothing of the kind goes on",
        "service/access/asking.py",
        "if refused is not None:",
        "if refused is None and caller.actor == '':",
        (_UNIT,),
    ),
    Mutation(
        "an account that was made again under a name owns what the former one submitted",
        "domain/rights.py",
        "return bool(self.owner) and self.owner == principal.name and same_account",
        "return bool(self.owner) and self.owner == principal.name",
        (_UNIT,),
    ),
    Mutation(
        "a queue with permissions takes everybody's jobs",
        "service/admission/limits.py",
        "if by is not None and (closed := closed_to(by.principal, catalogue.queues[spec.queue])):",
        "if by is None and (closed := closed_to(by.principal, catalogue.queues[spec.queue])):",
        (_PEOPLE,),
    ),
    Mutation(
        "pages of jobs hold hidden ones",
        "service/operations/jobs.py",
        "page = self._queries().page(evolve(where, seen=seeing.only()), after=after, limit=limit)",
        "page = self._queries().page(evolve(where, seen=None), after=after, limit=limit)",
        (_PEOPLE,),
    ),
    Mutation(
        "an operator may give itself rights in a queue",
        "storage/permissions.py",
        "refused = None if by is None or old == new else refusal_of(by.principal, Right.CHANGE, Subject.SETTINGS)",
        "refused = None",
        (_PEOPLE,),
    ),
    Mutation(
        "a token exceeds its user",
        "domain/access/grants.py",
        "return () if best is None else (ROLES[min(best, ROLES.index(most))],)",
        "return () if best is None else (most,)",
        (_TOKENS,),
    ),
    Mutation(
        "any secret opens what a token's id names",
        "service/access/tokens.py",
        "if not hmac.compare_digest(_digest(form[2]), _NOBODYS if token is None else token.digest) or token is None:",
        "if token is None:",
        (_TOKENS,),
    ),
    Mutation(
        "an account that was made again under a name keeps the former one's tokens",
        "service/access/book.py",
        "if user.uid != token.uid:",
        "if user.name != token.user:",
        (_TOKENS,),
    ),
    Mutation(
        "the tasks of an array are nobody's",
        "controller/workloads/owners.py",
        "submitted_by=work.row.submitted_by,",
        'submitted_by="",',
        (_WHOSE,),
    ),
    Mutation(
        "a list of somebody's jobs has everybody's",
        "storage/sql/query.py",
        "query = query.where(jobs.c.submitted_by == codec.storable(where.submitted_by))",
        "query = query.where(jobs.c.submitted_by != codec.storable(where.submitted_by + 'x'))",
        ("contract/test_store_queries.py",),
    ),
    Mutation(
        "a group has all that begin like it",
        "domain/workloads/group.py",
        "return self.name + BELOW",
        "return self.name",
        ("contract/test_store_queries.py",),
    ),
    Mutation(
        "an event of a job is in no group",
        "domain/event_mapping.py",
        "events[number] = record._replace(group=group)",
        "events[number] = record",
        ("integration/test_groups.py",),
    ),
    Mutation(
        "what was stored before is nobody's",
        "storage/sql/store.py",
        "migrations.bring_up(database, before_upgrade, owner)",
        "migrations.bring_up(database, before_upgrade)",
        (_WHOSE,),
    ),
    Mutation(
        "a report names those whose work is hidden",
        "service/operations/overview.py",
        "if alone and share is Share.USER else found",
        "if not alone and share is Share.USER else found",
        (_PEOPLE,),
    ),
)
