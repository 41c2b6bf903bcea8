"""Which calls of Backend.AI's client this server answers: the rest is refused, each noun for a reason."""

from __future__ import annotations

ANSWERED = {
    "domain": {"admin_search", "get"},
    "gql": {"query"},
    "keypair": {
        *("search", "issue", "revoke", "update", "admin_search", "admin_get", "admin_create", "admin_update"),
        "admin_delete",
    },
    "project": {"admin_search", "get"},
    "image": {"admin_search"},
    "resource_group": {
        *("search", "get", "get_allowed_resource_groups_for_domain", "get_allowed_resource_groups_for_project"),
    },
    "scheduling_handler": {"list"},
    "scheduling_history": {
        *("search_session_history", "session_scoped_search", "search_kernel_history", "kernel_scoped_search"),
    },
    "session": {
        *("enqueue", "get", "update", "terminate", "get_logs", "admin_search", "my_search", "project_search"),
        *("search_sessions_by_agent", "admin_search_kernels", "search_kernels_by_agent", "search_kernels_by_session"),
    },
    "user": {"admin_search", "get"},
}
"""The methods of each noun of the client that work."""
WHY_NOT = {
    "entries are written by manifests": {
        *(
            "domain",
            "image",
            "project",
            "resource_group",
            "resource_preset",
            "resource_slot",
            "runtime_variant",
            "runtime_variant_preset",
            "user",
        ),
    },
    "there are no deployments here": {
        *("deployment", "deployment_revision_preset", "model_card", "scheduling_history", "service_catalog"),
        *("prometheus_query_preset", "prometheus_query_preset_category"),
    },
    "sessions have neither services nor idle checks here, and no fitting check": {
        *("idle_checker", "idle_checker_assignment", "session"),
    },
    "programs see the files of their machine: there are no virtual folders and no storages": {
        *(
            "artifact",
            "artifact_registry",
            "container_registry",
            "huggingface_registry",
            "object_storage",
            "quota_scope",
        ),
        *("reservoir_registry", "storage_host", "storage_namespace", "vfolder", "vfs_storage"),
    },
    "limits are those of queues and users": {
        *("fair_share", "resource_allocation", "resource_policy", "resource_usage", "retention_policy"),
    },
    "keys for SSH are those of the machine, and none of an owner's keypairs comes first": {"keypair"},
    "rights are roles and the permissions of queues": {"entity_share", "rbac", "role_preset"},
    "the web console of upstream keeps this": {
        *("app_config", "app_config_allow_list", "app_config_definition", "app_config_fragment", "client_ip_masking"),
        *("login_client_type", "login_history", "login_session"),
    },
    "Holdfast has its own: see `holdfast nodes`, `audit`, `notifier`, `secret` and `export`": {
        *("agent", "audit_log", "entity_label", "entity_type", "export", "notification", "secret"),
    },
}
"""The nouns of which other calls are not answered, by the reason."""
