"""A JupyterHub for a course on one machine: to try it out, and to begin a real one from.

    CLASSROOM_HUB=~/hub .venv/bin/jupyterhub -f classroom/hub/jupyterhub_config.py

Then open http://localhost:8000 and log in with any name and any password. The folder
CLASSROOM_HUB gets the homes of the users, the exchange and the hub's own files.

This is no hub for a class yet: nobody's name is checked, and all servers run as the user
who started the hub, who can read everything in them. Three places below, marked "Real",
say what to change; the page "Teaching with this book" says what a large class uses.
"""

import os
import sys
from pathlib import Path

c = get_config()

here = Path(__file__).resolve().parent
root = Path(os.environ.get("CLASSROOM_HUB", "hub")).resolve()
exchange = root / "exchange"
exchange.mkdir(parents=True, exist_ok=True)
exchange.chmod(0o777)  # nbgrader asks for it: everybody hands in here

# The hub and its proxy, for this machine only. Real: have HTTPS in front of it, or set
# c.JupyterHub.ssl_key and ssl_cert, and bind to the machine's address.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.JupyterHub.db_url = f"sqlite:///{root / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(root / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(root / "proxy.pid")
proxy = Path(sys.prefix, "node_modules", ".bin", "configurable-http-proxy")
if proxy.exists():
    c.ConfigurableHTTPProxy.command = [str(proxy)]

# Who may log in: anybody, with any password. Real: delete this line, and the system's
# users log in with their passwords (PAM); or use the authenticator of your university
# (package oauthenticator), and c.Authenticator.allowed_users.
c.JupyterHub.authenticator_class = "dummy"

# Whose servers run where: all as one user, with a folder each. Real: delete these two
# lines when the hub runs as root, and each server runs as the user of the system who
# logged in; or use a spawner that gives everybody a container.
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(root / "home/{username}")
if os.geteuid() == 0:
    c.Spawner.args = ["--allow-root"]

c.Spawner.cmd = [str(Path(sys.executable).with_name("jupyterhub-singleuser"))]
c.Spawner.default_url = "/lab"
c.Spawner.environment = {
    "CLASSROOM_EXCHANGE": str(exchange),
    "JUPYTER_CONFIG_PATH": str(here),  # has nbgrader_config.py
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
}
c.Spawner.mem_limit = "2G"  # kept only by spawners that can
c.Spawner.start_timeout = c.Spawner.http_timeout = 180
