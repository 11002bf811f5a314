"""Alert rules and dashboard: each failure is noticed, and each name exists in `/metrics`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import yaml

from tests.cli.serving import wait_until
from tests.http.backstage import another_deployment
from tests.support import postgres
from tests.support.service import Deployment, Server, free_port, running_server

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
ALERTS: Final = DEPLOY / "alerts.yaml"
RULES: Final = [
    rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
]
DASHBOARD: Final = json.loads((DEPLOY / "dashboard.json").read_text())
QUERIES: Final = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]

# The series of a healthy server; after `=` the growth each minute.
SERVER = 'instance="a:9", job="countersign"'
FINE: Final[dict[str, str]] = {
    f"up{{{SERVER}}}": "1+0x400",
    f"process_start_time_seconds{{{SERVER}}}": "1000+0x400",
    f"process_open_fds{{{SERVER}}}": "40+0x400",
    f"process_max_fds{{{SERVER}}}": "20000+0x400",
    f'countersign_loops_ended_total{{{SERVER}, loop="worker"}}': "0+0x400",
    f"countersign_database_trouble{{{SERVER}}}": "0+0x400",
    f'countersign_oldest_wait_seconds{{{SERVER}, lane="write"}}': "0.01+0x400",
    f'countersign_oldest_wait_seconds{{{SERVER}, lane="scan"}}': "12+0x400",
    f'countersign_oldest_wait_seconds{{{SERVER}, lane="copy"}}': "12+0x400",
    f'countersign_http_answers_total{{{SERVER}, operation="acknowledgeNotice", status="200"}}': (
        "0+6000x400"
    ),
    f'countersign_http_answers_total{{{SERVER}, operation="acknowledgeNotice", status="503"}}': (
        "0+1x400"
    ),
    f'countersign_http_answers_total{{{SERVER}, operation="acknowledgeNotice", status="409"}}': (
        "0+1x400"
    ),
    f'countersign_operation_seconds_bucket{{{SERVER}, operation="acknowledgeNotice", le="0.5"}}': (
        "0+6000x400"
    ),
    f'countersign_operation_seconds_bucket{{{SERVER}, operation="acknowledgeNotice", le="2.5"}}': (
        "0+6000x400"
    ),
    f'countersign_operation_seconds_bucket{{{SERVER}, operation="acknowledgeNotice", le="+Inf"}}': (
        "0+6000x400"
    ),
    f'countersign_log_suspended{{{SERVER}, mode="live"}}': "0+0x400",
    f'countersign_head_age_seconds{{{SERVER}, mode="live"}}': "0.2+0x400",
    f"countersign_clock_ahead_seconds{{{SERVER}}}": "0.01+0x400",
    f'countersign_disk_free_ratio{{{SERVER}, place="data"}}': "0.5+0x400",
    f'countersign_disk_free_bytes{{{SERVER}, place="data"}}': "1e11+0x400",
    f'countersign_verifications_total{{{SERVER}, provider="p", status="verified", reason=""}}': (
        "0+60x400"
    ),
    f'countersign_verifications_total{{{SERVER}, provider="p", status="error", reason="e"}}': (
        "0+0x400"
    ),
    f'countersign_promise_age_seconds{{{SERVER}, promise="p", of=""}}': "0 60 0 1800 0+0x400",
    f'countersign_promise_limit_seconds{{{SERVER}, promise="p", severity="ticket"}}': "3600+0x400",
    f'countersign_promise_limit_seconds{{{SERVER}, promise="p", severity="page"}}': "7200+0x400",
    f'countersign_build_info{{{SERVER}, version="1", engine="sqlite"}}': "1+0x400",
}
# For each alert: the initial metrics, and the minutes until it fires.
FAILURES: Final[dict[str, tuple[dict[str, str], int]]] = {
    "CountersignDown": ({"up{": "0+0x400"}, 3),
    "CountersignRestarts": ({"process_start_time": "0+9x400"}, 10),
    "CountersignWorkerEnded": ({"countersign_loops_ended": "0+1x400"}, 5),
    "CountersignDatabaseTrouble": ({"countersign_database_trouble": "1+0x400"}, 3),
    "CountersignCallStuck": ({"countersign_oldest_wait_seconds{": "0+60x400"}, 2),
    "CountersignErrors": ({'status="503"': "0+600x400"}, 10),
    "CountersignConflicts": ({'status="409"': "0+6000x400"}, 12),
    "CountersignSlow": ({'le="0.5"': "0+60x400"}, 12),
    "CountersignSealingSuspended": ({"countersign_log_suspended": "1+0x400"}, 3),
    "CountersignHeadOfTheFuture": ({"countersign_head_age": "-7200+60x400"}, 2),
    "CountersignClockOff": ({"countersign_clock_ahead": "-40+0x400"}, 5),
    "CountersignDiskLow": ({"countersign_disk_free_ratio": "0.2-0.01x19"}, 17),
    "CountersignDiskFull": ({"countersign_disk_free_bytes": "1e6+0x400"}, 1),
    "CountersignFilesExhausted": ({"process_open_fds": "19000+0x400"}, 4),
    "CountersignProviderDown": ({'provider="p", status="error"': "0+600x400"}, 30),
    "CountersignPromiseLate": ({"countersign_promise_age": "0+60x400"}, 65),
    "CountersignPromiseBroken": ({"countersign_promise_age": "0+60x400"}, 130),
    "CountersignVersionsDiffer": ({"countersign_build_info": "1+0x400"}, 70),
}


def series(changed: dict[str, str]) -> list[dict[str, str]]:
    """Prometheus's series, with these metrics replaced."""
    found = dict(FINE)
    for part, values in changed.items():
        (name, *_) = [name for name in FINE if part in name]
        found[name] = values
    if any("build_info" in part for part in changed):
        found['countersign_build_info{instance="b:9", version="2", engine="sqlite"}'] = "1+0x400"
    return [{"series": name, "values": values} for name, values in found.items() if values]


def promtool(*arguments: str) -> str:
    """Run it; returns its output."""
    done = subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_alert_has_a_failure_that_it_is_tried_with() -> None:
    """A rule without one may never fire."""
    assert sorted(rule["alert"] for rule in RULES) == sorted(FAILURES)
    assert all(set(rule["annotations"]) == {"summary", "what_to_do"} for rule in RULES)


@pytest.mark.promtool
def test_each_alert_fires_at_its_failure_and_none_in_a_healthy_state(tmp_path: Path) -> None:
    """Judged by Prometheus itself."""
    fires = 'count(ALERTS{alertstate="firing", alertname="%s"})'
    tests: list[dict[str, Any]] = [
        {
            "interval": "1m",
            "input_series": series(changed),
            "promql_expr_test": [
                {
                    "expr": f"{fires % name} > 0",
                    "eval_time": f"{minutes}m",
                    "exp_samples": [{"labels": "{}", "value": 1}],
                }
            ],
        }
        for name, (changed, minutes) in FAILURES.items()
    ]
    none = {"expr": 'ALERTS{alertstate="firing"}', "eval_time": "200m", "exp_samples": []}
    tests.append({"interval": "1m", "input_series": series({}), "promql_expr_test": [none]})
    file = tmp_path / "tests.yaml"
    # JSON is YAML, too.
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": tests}))
    assert "SUCCESS" in promtool("test", "rules", str(file))


@pytest.mark.promtool
def test_prometheus_understands_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    """And the rules."""
    rules = [{"record": f"query{n}", "expr": query} for n, query in enumerate(QUERIES)]
    file = tmp_path / "queries.yaml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(file), str(ALERTS))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Give a server with metrics."""
    with running_server(
        another_deployment(tmp_path / "data"), METRICS_PORT=str(free_port())
    ) as started:
        yield started


def metrics_of(server: Server) -> str:
    port = server.deployment.settings["METRICS_PORT"]
    return httpx2.get(f"http://127.0.0.1:{port}/metrics", verify=False).text


@pytest.mark.one_engine
def test_each_metric_of_the_alerts_and_the_dashboard_exists(server: Server) -> None:
    """With its labels: a rule over a name that no server has never fires."""
    text = metrics_of(server)
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    known = set(types)
    for name, kind in types.items():
        if kind == "histogram":
            known |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"}
    queries = [*QUERIES, *(rule["expr"] for rule in RULES)]
    used = {
        name for query in queries for name in re.findall(r"\b(?:countersign|process)_\w+", query)
    }
    assert used - known == set()
    operations = set(re.findall(r'operation="(\w+)"', " ".join(queries)))
    document = json.loads((DEPLOY.parent / "spec" / "openapi.json").read_text())
    assert operations <= set(re.findall(r'"operationId": "(\w+)"', json.dumps(document)))


@pytest.mark.promtool
@pytest.mark.one_engine
def test_prometheus_understands_the_metrics(server: Server) -> None:
    """Names, help, types and histograms."""
    with server.client() as client:
        assert client.get("/healthz").status_code == 200
    text = metrics_of(server)
    assert 'countersign_operation_seconds_bucket{le="+Inf",operation="getHealth"} 1.0' in text
    assert 'countersign_disk_free_ratio{place="data"} 0.' in text
    assert 'countersign_head_age_seconds{mode="live"}' in text
    assert 'countersign_build_info{engine="sqlite"' in text
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.postgres
def test_the_clock_of_postgresql_is_compared(tmp_path: Path, postgres_server: Any) -> None:  # noqa: ANN401
    """The embedded database has no clock, and no such metric."""
    settings = {"DATABASE_URL": postgres.fresh_database(postgres_server)}
    deployment = Deployment(data_dir=tmp_path / "data", settings=settings)
    deployment.run("init")
    with running_server(deployment, METRICS_PORT=str(free_port())) as server:
        measured = re.compile(r"^countersign_clock_ahead_seconds (\S+)$", re.MULTILINE)
        wait_until(lambda: measured.search(metrics_of(server)) is not None, "a measurement")
        assert abs(float(measured.findall(metrics_of(server))[0])) < 5
