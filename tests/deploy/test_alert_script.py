"""The script that sends the alarm of a unit that has failed."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"


def alert(tmp_path: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the script for a unit whose journal is this test's."""
    journal = tmp_path / "journalctl"
    journal.write_text(
        "#!/bin/sh\necho 'fine     disk     enough'\n"
        "echo 'broken   server   \"no\" server responds'\n"
    )
    sendmail = tmp_path / "sendmail"
    sendmail.write_text(f"#!/bin/sh\ncat > {tmp_path}/mail\n")
    for program in (journal, sendmail):
        program.chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SENDMAIL": str(sendmail)}
    return subprocess.run(
        [str(UNITS / "alert.sh"), "countersign-doctor.service"],
        env=own | settings,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_alarm_goes_by_mail(tmp_path: Path) -> None:
    """With the broken checks, and without the good ones."""
    done = alert(tmp_path, ALERT_MAIL="on-call@example.com")
    assert done.returncode == 0, done.stderr
    mail = (tmp_path / "mail").read_text()
    assert mail.startswith("To: on-call@example.com\nSubject: countersign-doctor.service failed")
    assert "no" in mail
    assert "server responds" in mail
    assert "enough" not in mail


def test_an_alarm_goes_to_a_webhook(tmp_path: Path) -> None:
    """As JSON, whatever the lines contain; a refusal of the receiver is a failure."""
    got: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if len(got) == 1 else 500)
            self.end_headers()

        def log_message(self, *_: Any) -> None:  # noqa: ANN401
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{there.server_port}/hook"
        assert alert(tmp_path, ALERT_WEBHOOK=url).returncode == 0
        assert '"no" server responds' in got[0]["text"]
        assert alert(tmp_path, ALERT_WEBHOOK=url).returncode == 1
        there.shutdown()


def test_an_alarm_without_an_address_is_a_failure(tmp_path: Path) -> None:
    """An operator without settings must not believe that someone is called."""
    done = alert(tmp_path)
    assert done.returncode == 1
    assert "ALERT_MAIL" in done.stderr
