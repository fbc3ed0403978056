"""What the environment adds: `${NAME}` in values, and `HOLDFAST_…` over keys."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.settings.environment import Environment
from gateway.settings.load import ConfigInvalid, load
from gateway.settings.model import Settings
from gateway.settings.units import Address

FILE = """
listen: h:1
upstreams:
  my-crm: {url: http://h/mcp, holds: {max: 5}, input_keys: {Tool: [a]}}
"""


def loaded(tmp_path: Path, environ: Mapping[str, str], text: str = FILE) -> Settings:
    file = tmp_path / "holdfast.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, environ=environ)


def refused(tmp_path: Path, environ: Mapping[str, str], text: str = FILE) -> list[str]:
    with pytest.raises(ConfigInvalid) as invalid:
        loaded(tmp_path, environ, text)
    return [str(problem) for problem in invalid.value.problems]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${A}", "1"),
        ("x${A}-${B}y", "x1-${A}y"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$A $ {A} $", "$A $ {A} $"),
        ("${EMPTY}", ""),
    ],
)
def test_a_reference_is_replaced_once_and_can_be_escaped(written: str, meant: str) -> None:
    environment = Environment({"A": "1", "B": "${A}", "EMPTY": ""})
    assert environment.interpolate({"k": [written, 5, None]}) == {"k": [meant, 5, None]}
    assert environment.problems == []


@pytest.mark.parametrize("written", ["${}", "${1A}", "${A:-x}", "${A", "${a b}", "${${A}}"])
def test_what_is_no_reference_is_a_problem(written: str) -> None:
    environment = Environment({"A": "1"})
    environment.interpolate({"k": [{"deep": written}]})
    assert [problem.path for problem in environment.problems] == ["k[0].deep"]


def test_every_missing_variable_is_named_with_its_path(tmp_path: Path) -> None:
    text = "listen: ${HOST}:${PORT}\nupstreams: {a: {url: 'http://${HOST}/'}}\n"
    assert refused(tmp_path, {}, text) == [
        "listen: environment variable HOST is not set",
        "listen: environment variable PORT is not set",
        "upstreams.a.url: environment variable HOST is not set",
    ]


def test_numbers_durations_and_words_may_come_from_the_environment(tmp_path: Path) -> None:
    text = "drain: ${D}\nlog: {format: '${F}'}\nupstreams: {a: {url: 'http://h', holds: {max: '${N}'}}}\n"
    settings = loaded(tmp_path, {"D": "7", "F": "json", "N": "12"}, text)
    assert (settings.drain, settings.log.format, settings.upstreams["a"].holds.max) == (7.0, "json", 12)


def test_variables_go_over_the_file_at_every_depth_in_any_case(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        {
            "HOLDFAST_LISTEN": "[::1]:2",
            "holdfast_lame_duck": "3s",
            "HOLDFAST_LOG__LEVEL": "WARNING",
            "HOLDFAST_UPSTREAMS__MY_CRM__HOLDS__TTL": "1h",
            "HOLDFAST_UPSTREAMS__MY_CRM__INPUT_KEYS__TOOL": "b, c",
            "HOLDFAST_UPSTREAMS__Work_Items__URL": "http://w/",
            "HOLDFAST_LIMITS__ALLOWED_HOSTS": "[a, 'b:80']",
            "HOLDFAST_LIMITS__ALLOWED_ORIGINS": "https://a,https://b,",
            "UNRELATED": "x",
        },
    )
    crm = settings.upstreams["my-crm"]
    assert settings.listen == Address("::1", 2)
    assert settings.lame_duck == 3.0
    assert settings.log.level == "warning"
    assert (crm.holds.ttl, crm.holds.max) == (3600.0, 5)
    assert crm.input_keys == {"Tool": ("b", "c")}
    assert settings.upstreams["work-items"].url == "http://w/"
    assert settings.limits.allowed_hosts == ("a", "b:80")
    assert settings.limits.allowed_origins == ("https://a", "https://b")


def test_a_whole_section_may_be_given_and_the_deeper_variable_wins(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path, {"HOLDFAST_LOG": "{level: debug, format: json}", "HOLDFAST_LOG__LEVEL": "error"}
    )
    assert (settings.log.level, settings.log.format) == ("error", "json")


def test_an_empty_variable_takes_an_optional_setting_away(tmp_path: Path) -> None:
    assert loaded(tmp_path, {"HOLDFAST_ADMIN": ""}, FILE + "admin: h:9\n").admin is None
    assert refused(tmp_path, {"HOLDFAST_DRAIN": ""}) == [
        "drain: has no value; leave the key out to get the default (set by HOLDFAST_DRAIN)"
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("HOLDFAST_LISTNE", "; did you mean HOLDFAST_LISTEN?"),
        ("HOLDFAST_LISTNE__PORT", "; did you mean HOLDFAST_LISTEN?"),
        ("HOLDFAST_LISTEN__PORT", ""),
        ("HOLDFAST_SEALING__KEY", "; did you mean HOLDFAST_SEALING__KEYS?"),
        ("HOLDFAST_SEALING__KEYS__0", ""),
        ("HOLDFAST_UPSTREAMS__MY_CRM__URI", "; did you mean HOLDFAST_UPSTREAMS__MY_CRM__URL?"),
        ("HOLDFAST_UPSTREAMS__", ""),
        ("HOLDFAST_", ""),
        ("HOLDFAST_SEAL_KEY", "; did you mean HOLDFAST_SEALING__KEYS?"),
        ("HOLDFAST_LOG_LEVEL", "; did you mean HOLDFAST_LOG__LEVEL?"),
        ("HOLDFAST_UPSTREAMS__MY_CRM__HOLDS_TTL", "; did you mean HOLDFAST_UPSTREAMS__MY_CRM__HOLDS__TTL?"),
        ("HOLDFAST_PORT", ""),
    ],
)
def test_a_variable_that_is_no_setting_is_an_error(tmp_path: Path, name: str, hint: str) -> None:
    """Known trap: settings libraries ignore a misspelt top-level variable in silence."""
    expected = f"{name}: unknown variable: it is not a setting, and no ${{{name}}} refers to it{hint}"
    assert refused(tmp_path, {name: "x"}) == [expected]


def test_a_variable_that_the_file_refers_to_is_the_file_s_own(tmp_path: Path) -> None:
    text = "listen: ${HOLDFAST_WHERE}\nupstreams: {a: {url: 'http://h'}}\n"
    assert loaded(tmp_path, {"HOLDFAST_WHERE": "h:5"}, text).listen == Address("h", 5)


def test_a_misspelt_upstream_is_told_by_its_variable(tmp_path: Path) -> None:
    assert refused(tmp_path, {"HOLDFAST_UPSTREAMS__MY_CRN__SETTLE": "1s"}) == [
        (
            "upstreams.my-crn.url: is required, unless there is a command "
            "(set by HOLDFAST_UPSTREAMS__MY_CRN__SETTLE)"
        )
    ]


def test_a_wrong_value_is_told_by_path_and_variable(tmp_path: Path) -> None:
    assert refused(tmp_path, {"HOLDFAST_LOG__LEVEL": "loud", "HOLDFAST_LIMITS": "{body: ["}) == [
        "limits: is not YAML: line 2, column 1: did not find expected node content (set by HOLDFAST_LIMITS)",
        "log.level: should be 'debug', 'info', 'warning' or 'error' (set by HOLDFAST_LOG__LEVEL)",
    ]


def test_a_key_twice_inside_a_variable_is_an_error(tmp_path: Path) -> None:
    assert refused(tmp_path, {"HOLDFAST_LOG": "{level: info, level: debug}"}) == [
        "log.level: is written twice, in lines 1 and 1"
    ]


def test_two_variables_for_one_key_are_an_error(tmp_path: Path) -> None:
    assert refused(tmp_path, {"HOLDFAST_DRAIN": "1s", "holdfast_drain": "2s"}) == [
        "holdfast_drain: sets the same key as HOLDFAST_DRAIN"
    ]


def test_a_file_of_the_wrong_shape_is_not_hidden_by_a_variable(tmp_path: Path) -> None:
    assert refused(tmp_path, {"HOLDFAST_LOG__LEVEL": "debug"}, FILE + "log: [1]\n") == [
        "log: should be a mapping (key: value)"
    ]


def test_what_kubernetes_sets_for_a_service_of_our_name_is_not_ours(tmp_path: Path) -> None:
    """Kubernetes: service links are in every pod of the namespace unless `enableServiceLinks: false`."""
    links = {
        "HOLDFAST_SERVICE_HOST": "10.0.0.1",
        "HOLDFAST_SERVICE_PORT": "8080",
        "HOLDFAST_SERVICE_PORT_HTTP": "8080",
        "HOLDFAST_PORT": "tcp://10.0.0.1:8080",
        "HOLDFAST_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "HOLDFAST_PORT_8080_TCP_PROTO": "tcp",
        "HOLDFAST_PORT_8080_TCP_PORT": "8080",
        "HOLDFAST_PORT_8080_TCP_ADDR": "10.0.0.1",
        "HOLDFAST_ADMIN_SERVICE_HOST": "10.0.0.2",
        "HOLDFAST_ADMIN_SERVICE_PORT": "9090",
        "HOLDFAST_ADMIN_PORT": "tcp://10.0.0.2:9090",
    }
    assert loaded(tmp_path, links).admin is None
    assert [line.split(":")[0] for line in refused(tmp_path, {**links, "HOLDFAST_CRM_PORT": "1"})] == [
        "HOLDFAST_CRM_PORT"
    ]


def test_variables_of_a_command_are_taken_in_capitals_unless_the_file_spells_them(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.yaml"
    file.write_text("upstreams: {fs: {command: [server], env: {Mixed_Case: a}}}", encoding="utf-8")
    environ = {
        "HOLDFAST_UPSTREAMS__FS__ENV__API_KEY": "b",
        "HOLDFAST_UPSTREAMS__FS__ENV__MIXED_CASE": "c",
        "HOLDFAST_UPSTREAMS__FS__COMMAND": "node, server.js",
    }
    upstream = load(file, environ=environ).upstreams["fs"]
    assert {name: value.get_secret_value() for name, value in upstream.env.items()} == {
        "Mixed_Case": "c",
        "API_KEY": "b",
    }
    assert upstream.command == ("node", "server.js")
