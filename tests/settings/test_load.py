"""A configuration is loaded whole, or everything that is wrong with it is told at once."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.settings.load import ConfigInvalid, from_upstream_url, load, sealing_secrets
from gateway.settings.model import Settings
from gateway.settings.problems import Problem
from gateway.settings.units import Address

KEY = "Zm9yIHRlc3RzIG9ubHksIG5ldmVyIGFueXdoZXJlIGVsc2U"
OTHER_KEY = "5f" * 32
MINIMAL = "upstreams: {crm: {url: 'http://h/mcp'}}\n"


def loaded(tmp_path: Path, text: str, environ: Mapping[str, str] | None = None) -> Settings:
    file = tmp_path / "holdfast.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, environ=environ or {})


def refused(tmp_path: Path, text: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    with pytest.raises(ConfigInvalid) as invalid:
        loaded(tmp_path, text, environ)
    problems = {problem.path: problem.message for problem in invalid.value.problems}
    assert len(problems) == len(invalid.value.problems), "one place, one complaint"
    return problems


def test_the_issue_s_own_example_loads(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        """
        listen: 127.0.0.1:8080
        sealing: {keys: ["${HOLDFAST_SEAL_KEY}"], ttl: 10m}
        upstreams:
          crm:
            url: http://127.0.0.1:9000/mcp
            path: /crm/mcp
            sessions: {mode: auto, max: 256, idle: 5m, warm: 2}
            holds: {ttl: 10m, max: 10000}
            settle: 50ms
            call_timeout: 60s
            asks: {elicitation: relay, sampling: relay, roots: relay, invalid: reask}
            input_keys: {update_work_item: [resolution, duplicate_of]}
        """,
        {"HOLDFAST_SEAL_KEY": KEY},
    )
    crm = settings.upstreams["crm"]
    assert settings.listen == Address("127.0.0.1", 8080)
    assert settings.path_of("crm") == "/crm/mcp"
    assert (crm.settle, crm.call_timeout, crm.sessions.idle, crm.holds.ttl) == (0.05, 60.0, 300.0, 600.0)
    assert crm.input_keys == {"update_work_item": ("resolution", "duplicate_of")}
    assert sealing_secrets(settings) == [KEY]


def test_the_least_file_is_a_whole_configuration(tmp_path: Path) -> None:
    settings = loaded(tmp_path, MINIMAL)
    assert settings.path_of("crm") == "/mcp"
    assert settings.admin is None
    assert sealing_secrets(settings) == []


def test_several_upstreams_have_a_path_each(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "upstreams: {a: {url: 'http://h'}, b-2: {url: 'http://h'}}")
    assert [settings.path_of(name) for name in settings.upstreams] == ["/a/mcp", "/b-2/mcp"]


def test_a_section_with_nothing_in_it_is_at_its_defaults(tmp_path: Path) -> None:
    text = "sealing:\nlog:\nadmin:\nlimits: {allowed_hosts: }\n"
    text += "upstreams: {crm: {url: 'http://h/mcp', asks: , input_keys: }}\n"
    assert loaded(tmp_path, text) == loaded(tmp_path, MINIMAL)


def test_few_sessions_need_no_word_about_spare_ones(tmp_path: Path) -> None:
    """`sessions: {mode: pooled, max: 1}` is what servers for one client only are given."""
    text = "upstreams: {one: {url: 'http://h', sessions: {mode: pooled, max: 1}}}"
    assert loaded(tmp_path, text).upstreams["one"].sessions.max == 1


def test_every_error_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    problems = refused(
        tmp_path,
        """
        listne: 127.0.0.1:80
        listen: 127.0.0.1
        admin: 127.0.0.1:99999
        sealing: {keys: ["${ABSENT}", aGVsbG8, 5], ttl: ten minutes, keys_file: absent}
        upstreams:
          one:
            url: ftp://h
            sessions: {mode: poled, max: yes, idle: 0, warm: -1, wait: }
            asks: {roots: maybe, static_roots: [{name: x}, {uri: 'http://h'}]}
            input_keys: {a.b: x, c: [d, d]}
            path: no-slash
            key_hint: ""
          Bad_Name: {url: 'http://h'}
          two: {url: 'http://h', path: /same, asks: {roots: static}}
          three: {url: 'http://h', path: /same, settle: 2m, asks: {static_roots: [{uri: 'file:///x'}]}}
          four: []
          five:
          six:
            url: http://h
            sessions: {max: 1, warm: 2}
            auth: {mode: passthrough}
            caching: {scope: public}
        limits: {body: 0, event: 1.5, allowed_origins: x, allowed_hosts: ["a/b"]}
        log: {level: loud, levle: info}
        drain: -1
        """,
    )
    assert problems == {
        "listne": "unknown key; did you mean listen?",
        "listen": "should be HOST:PORT, such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:8080",
        "admin": "the port should be at most 65535",
        "sealing.keys[0]": "environment variable ABSENT is not set",
        "sealing.keys[1]": "is too short: 5 bytes where 32 are needed; see `holdfast keygen`",
        "sealing.keys[2]": "should be text; if it is meant as text, put it in quotes",
        "sealing.ttl": "should be a duration such as 50ms, 10s, 5m or 1h, or a number of seconds",
        "sealing.keys_file": "cannot be read: No such file or directory",
        "upstreams.one.url": "should be an http:// or https:// URL with a host",
        "upstreams.one.sessions.mode": "should be 'auto', 'pooled', 'fresh' or 'affinity'",
        "upstreams.one.sessions.max": "should be a whole number",
        "upstreams.one.sessions.idle": "should be longer than nothing",
        "upstreams.one.sessions.warm": "should be at least 0",
        "upstreams.one.sessions.wait": "has no value; leave the key out to get the default",
        "upstreams.one.asks.roots": "should be 'relay', 'decline' or 'static'",
        "upstreams.one.asks.static_roots[0].uri": "is required",
        "upstreams.one.asks.static_roots[1].uri": "should be a file:// URI",
        'upstreams.one.input_keys["a.b"]': "should be a list",
        "upstreams.one.input_keys.c": "should be different names, none of them empty",
        "upstreams.one.path": "should start with '/' and have only letters, digits and . _ ~ - "
        "between slashes",
        "upstreams.one.key_hint": "should not be empty",
        "upstreams.Bad_Name": "should be a name of lower-case letters, digits and '-', not beginning with '-'",
        "upstreams.two.asks.static_roots": "is required with roots: static; [] means no roots",
        "upstreams.three.path": "is the same as for two: /same",
        "upstreams.three.settle": "should be shorter than call_timeout",
        "upstreams.three.asks.static_roots": "only applies with roots: static",
        "upstreams.four": "should be a mapping (key: value)",
        "upstreams.five.url": "is required, unless there is a command",
        "upstreams.six.sessions.warm": "is more than sessions.max",
        "upstreams.six.caching.scope": "cannot be public with auth.mode: passthrough",
        "limits.body": "should be a size such as 512KiB or 4MiB, or a whole number of bytes",
        "limits.event": "should be a size such as 512KiB or 4MiB, or a whole number of bytes",
        "limits.allowed_origins": "should be a list",
        "limits.allowed_hosts[0]": "should be a host name, with or without :port, or *",
        "log.level": "should be 'debug', 'info', 'warning' or 'error'",
        "log.levle": "unknown key; did you mean level?",
        "drain": "should be a duration such as 50ms, 10s, 5m or 1h, or a number of seconds",
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("# words\n", "is empty"),
        ("- a\n", "should be a mapping"),
        ("words", "should be a mapping"),
        ("a: [", "line 2, column 1|line 1"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused_as_a_whole(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(ConfigInvalid, match=reason) as invalid:
        loaded(tmp_path, text)
    assert [problem.path for problem in invalid.value.problems] == [""]


def test_a_file_that_is_not_there_is_a_problem_like_any_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as invalid:
        load(tmp_path / "absent.yaml", environ={})
    assert invalid.value.problems == [Problem("", "cannot be read: No such file or directory")]


@pytest.mark.parametrize("text", ["log: {level: info}", "upstreams:", "upstreams: {}", "upstreams: []"])
def test_upstreams_are_required(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, text).keys() == {"upstreams"}


def test_without_upstreams_the_rest_is_checked_all_the_same(tmp_path: Path) -> None:
    problems = refused(tmp_path, "{listen: 'h:1', admin: 'h:1', sealing: {keys_file: absent}}")
    assert problems.keys() == {"upstreams", "admin", "sealing.keys_file"}


def test_a_key_written_twice_is_an_error(tmp_path: Path) -> None:
    assert refused(tmp_path, MINIMAL + "log: {}\nlog: {}\n") == {"log": "is written twice, in lines 2 and 3"}


def test_the_same_sealing_key_twice_is_a_rotation_gone_wrong(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(OTHER_KEY, encoding="utf-8")
    text = MINIMAL + f"sealing: {{keys: ['{OTHER_KEY}', {KEY}, '{OTHER_KEY.upper()}'], keys_file: keys}}"
    assert refused(tmp_path, text) == {
        "sealing.keys[2]": "is the same key as [0]",
        "sealing.keys_file": "contains a key twice, or one that is also in keys",
    }


def test_the_keys_file_is_found_beside_the_configuration_and_comes_after_keys(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"# old\n{OTHER_KEY}\n", encoding="utf-8")
    settings = loaded(tmp_path, MINIMAL + f"sealing: {{keys: [{KEY}], keys_file: keys}}")
    assert sealing_secrets(settings) == [KEY, OTHER_KEY]

    (tmp_path / "keys").unlink()
    with pytest.raises(ConfigInvalid, match=r"sealing\.keys_file: cannot be read"):
        sealing_secrets(settings)


def test_no_message_and_no_repr_shows_a_secret(tmp_path: Path) -> None:
    secret = "hunter2-hunter2"
    (tmp_path / "keys").write_text(secret, encoding="utf-8")
    text = """
        listen: ${SECRET}
        drain: ${SECRET}
        sealing: {keys: ["${SECRET}", "${hunter2-hunter2}"], keys_file: keys, ttl: "${SECRET}"}
        limits: {body: "${SECRET}", allowed_origins: ["${SECRET}/x"], allowed_hosts: ["${SECRET}/x"]}
        log: {level: "${SECRET}"}
        upstreams:
          a:
            url: "http://user:${SECRET}@h/"
            path: "${SECRET}"
            sessions: {mode: "${SECRET}", max: "${SECRET}"}
          b: {url: "${SECRET}", asks: {static_roots: [{uri: "${SECRET}"}]}, holds: "${SECRET}"}
        """
    with pytest.raises(ConfigInvalid) as invalid:
        loaded(
            tmp_path, text, {"SECRET": secret, "HOLDFAST_LIMITS__EVENT": secret, "HOLDFAST_HUNTER": secret}
        )
    assert len(invalid.value.problems) == 19
    assert "hunter2" not in str(invalid.value)
    assert "hunter2" not in repr(invalid.value.problems)

    good = loaded(tmp_path, MINIMAL + "sealing: {keys: ['${KEY}']}", {"KEY": KEY})
    assert KEY not in repr(good)
    assert KEY not in str(good.model_dump())


def test_the_mode_without_a_file_takes_a_url_and_the_environment() -> None:
    settings = from_upstream_url(
        "http://h/mcp",
        environ={
            "HOLDFAST_LISTEN": "0.0.0.0:1",
            "HOLDFAST_UPSTREAMS__DEFAULT__SETTLE": "1s",
            "HOLDFAST_UPSTREAMS__DEFAULT__URL": "http://other/",
            "PATH": "/bin",
        },
    )
    assert settings.listen == Address("0.0.0.0", 1)
    assert settings.upstreams["default"].url == "http://h/mcp"
    assert settings.upstreams["default"].settle == 1.0
    assert settings.path_of("default") == "/mcp"


def test_the_command_line_wins_over_environment_and_file(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.yaml"
    file.write_text(MINIMAL + "listen: h:1\nlog:\n", encoding="utf-8")
    settings = load(
        file,
        environ={"HOLDFAST_LISTEN": "h:2", "HOLDFAST_ADMIN": "h:3"},
        overrides={"listen": Address("h", 4), "log.level": "debug"},
    )
    assert (settings.listen, settings.admin) == (Address("h", 4), Address("h", 3))
    assert settings.log.level == "debug"
    assert from_upstream_url("http://h", "h:5", "h:6", {}, log_level="error").listen == Address("h", 5)


def test_a_wrong_override_is_a_problem_too() -> None:
    with pytest.raises(ConfigInvalid, match=r"upstreams\.default\.url: should be an http"):
        from_upstream_url("ftp://h")


def test_a_command_in_one_piece_is_one_problem(tmp_path: Path) -> None:
    """Ours: it was told besides that there is no command."""
    problems = refused(tmp_path, "upstreams: {fs: {command: npx -y server, env: {A: b}, tls: {}}}")
    assert problems == {"upstreams.fs.command": "should be a list"}


def test_a_command_takes_the_place_of_a_url(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "upstreams: {fs: {command: [server, --flag], env: {A: b}, cwd: data}}")
    upstream = settings.upstreams["fs"]
    assert upstream.command == ("server", "--flag")
    assert upstream.cwd == tmp_path / "data", "relative to the file"
    assert upstream.url is None


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/mcp"),
        ("127.0.0.1:8080", "http://localhost:8080/other"),
        ("127.0.0.1:80", "http://localhost"),
        ("localhost:8080", "http://[::1]:8080/mcp"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/mcp"),
        ("'[::]:443'", "https://localhost/mcp"),
        ("10.1.2.3:8080", "http://10.1.2.3:8080/mcp"),
        ("Gateway:8080", "http://gateway:8080/mcp"),
    ],
)
def test_a_gateway_is_not_put_in_front_of_itself(tmp_path: Path, listen: str, url: str) -> None:
    """Ours: calls waited for calls of their own until their time was over, and nothing said why."""
    text = f"listen: {listen}\nadmin: 127.0.0.1:9\nupstreams: {{a: {{url: '{url}'}}, b: {{url: 'http://[::1]:9'}}}}"
    told = "is where this gateway itself listens: choose another address for listen"
    assert refused(tmp_path, text) == {"upstreams.a.url": told}
    text = text.replace("[::1]:9", "localhost:9")
    assert refused(tmp_path, text)["upstreams.b.url"].endswith("for admin")


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("127.0.0.1:8080", "http://[::1]:8080/mcp"),
        ("127.0.0.1:8080", "http://127.0.0.1:8081/mcp"),
        ("127.0.0.1:8080", "http://server:8080/mcp"),
        ("0.0.0.0:8080", "http://server:8080/mcp"),
        ("10.1.2.3:8080", "http://127.0.0.1:8080/mcp"),
        ("127.0.0.1:0", "http://127.0.0.1/mcp"),
    ],
)
def test_a_server_at_the_same_port_of_another_address_is_another_server(
    tmp_path: Path, listen: str, url: str
) -> None:
    loaded(tmp_path, f"listen: {listen}\nupstreams: {{a: {{url: '{url}'}}}}")


def test_a_url_and_a_command_do_not_mix(tmp_path: Path) -> None:
    problems = refused(
        tmp_path,
        """
        upstreams:
          both: {url: 'http://h', command: [x]}
          neither: {settle: 1s}
          started: {command: [x], transport: sse, auth: {mode: passthrough}}
          listening: {url: 'http://h', transport: stdio, env: {A: b}, cwd: /tmp}
          numbers: {command: [x, 1], env: {A: 1}}
        """,
    )
    assert problems == {
        "upstreams.both.command": "cannot be combined with url: a server either listens or is started",
        "upstreams.neither.url": "is required, unless there is a command",
        "upstreams.started.transport": "can only be stdio with command",
        "upstreams.started.auth.mode": "cannot be passthrough with command: a process gets no headers",
        "upstreams.listening.transport": "can be stdio only with command",
        "upstreams.listening.env": "only applies with command",
        "upstreams.listening.cwd": "only applies with command",
        "upstreams.numbers.command[1]": "should be text; if it is meant as text, put it in quotes",
        "upstreams.numbers.env.A": "should be text; if it is meant as text, put it in quotes",
    }
