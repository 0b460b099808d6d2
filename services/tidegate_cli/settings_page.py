"""The page `docs/settings.md`, generated from the settings classes. `make schemas` writes it; a test compares it with the classes."""

from __future__ import annotations

from typing import Final

from tidegate_cli.setting_views import SettingView, setting_views

HEAD: Final = """\
# Settings

All settings of nodes, API and command line, with default, unit and meaning. `make schemas` generates this page from the settings classes.

## Where a value is from

Nodes and API read their settings once, at start. The first of these sources that has a value wins:

1. The environment. `TIDEGATE_HEALTH__PORT` sets `health.port`: put `TIDEGATE_` before the name and write `__` for the dot.
   Lists and maps are JSON, for example `TIDEGATE_NAMESPACES__EVENTS='["flights", "team-*"]'`.
2. The YAML file that `TIDEGATE_CONFIG` names. A section is a mapping, for example `health: {port: 8081}`.
3. The default.

One file and one environment may serve all processes: each process skips the settings of the others. An unknown name stops a process with exit
code 78, and the error suggests the closest name.

## Effective settings

`tidegate config show` prints the settings that a process would start with:

```
tidegate config show                    # node, API and command line
tidegate config show node --changed     # only values that are not the default
tidegate config show api -o json        # also variable and meaning of each setting
```

Each row has a process, a name, a unit, a source and a value. The source is `default`, `file` or `environment`.
The command line's `api_url` has two more sources: `option` (`--api`) and `local stack` (a running `tidegate dev`).
The sources come from the loader that also starts the process. A map, such as `quotas`, has a row for each value in it, because file and environment
may both add keys.

Run the command where the process runs, for example in its pod: the environment decides. It connects to nothing. It does not check that the gate's
secret file exists. Secrets, and logins in addresses, are printed as `**********`.

If a setting is wrong, the command names it with its source and the correction on standard error. The settings of the other processes are
still printed. The exit code is 78, as for the process itself.
"""


def settings_page() -> str:
    """Returns the whole page in Markdown."""
    plain = {"TIDEGATE_KAFKA__ALLOW_PLAINTEXT": "true"}
    node, api = (setting_views(process, plain) for process in ("node", "api"))
    shared = {view.name for view in node} & {view.name for view in api}
    api_views = {view.name: view for view in api}
    parts = [
        HEAD,
        "## Read by nodes and API\n",
        *(_entry(view, api_views[view.name]) for view in node if view.name in shared),
        "\n## Read by nodes\n",
        *(_entry(view) for view in node if view.name not in shared),
        "\n## Read by the API\n",
        *(_entry(view) for view in api if view.name not in shared),
        "\n## Read by the command line\n",
        *(_command_line_entry(view) for view in setting_views("cli", plain)),
    ]
    return "\n".join(parts) + "\n"


def _entry(view: SettingView, of_api: SettingView | None = None) -> str:
    default = _default(view)
    if of_api is not None and of_api.value != view.value:
        default += f"; API: {_default(of_api)}"
    return f"- `{view.name}` ({default}): {_sentence(view.description)}"


def _default(view: SettingView) -> str:
    value = False if view.name == "kafka.allow_plaintext" else view.value  # The page has to load without a broker.
    if view.name in HOST_DEFAULTS:
        return HOST_DEFAULTS[view.name]
    if value is None or value in ("", [], {}):
        return "unset"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{text.lower() if isinstance(value, bool) else text} {view.unit}".rstrip()


def _command_line_entry(view: SettingView) -> str:
    return f"- `{view.variable}` ({view.id}): {_sentence(view.description)}"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


HOST_DEFAULTS: Final = {
    "node": "host name",
    "launcher.host": "host name",
    "launcher.python": "interpreter of the node",
}
"""Defaults that depend on the host; the page names them instead."""
