"""One small shop in three frameworks: a page with a query in a loop, and a request by
its script.
"""

from __future__ import annotations

PAGE = """<!doctype html><html lang="en"><head><title>shop</title></head><body><main><h1>Orders</h1>
<p id="said"></p></main></body></html>"""

WORK = '''
import sqlite3
connection = sqlite3.connect(":memory:", check_same_thread=False)
connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total)")
connection.executemany("INSERT INTO orders VALUES (?, ?)", [(n, n) for n in range(40)])
PAGE = """PAGE_HERE"""
def loop():
    for number in range(20):
        connection.execute("SELECT total FROM orders WHERE id = ?", (number,)).fetchone()
def once():
    return connection.execute("SELECT count(*) FROM orders").fetchone()[0]
'''.replace("PAGE_HERE", PAGE)

FLASK = (
    WORK
    + """
import flask, queryprof
app = flask.Flask(__name__)
@app.get("/")
def page():
    loop()
    answer = flask.make_response(PAGE)
    if flask.request.args.get("policy"):
        answer.headers["Content-Security-Policy"] = flask.request.args["policy"]
    return answer
@app.get("/data")
def data():
    return {"orders": once()}
@app.get("/part")
def part():
    return f"<b>{once()}</b>"
import threading
goes = threading.Event()
@app.get("/slow")
def slow():
    goes.wait()
    loop()
    return "slow"
@app.get("/go")
def go():
    goes.set()
    return "go"
app.wsgi_app = queryprof.Badge(app.wsgi_app)
"""
)

FASTAPI = (
    WORK
    + """
import fastapi, queryprof
from fastapi.responses import HTMLResponse
app = fastapi.FastAPI()
@app.get("/", response_class=HTMLResponse)
async def page(policy: str = ""):
    loop()
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": policy} if policy else {})
@app.get("/data")
def data():
    return {"orders": once()}
@app.get("/part", response_class=HTMLResponse)
async def part():
    return f"<b>{once()}</b>"
app.add_middleware(queryprof.Badge)
"""
)

DJANGO = (
    WORK
    + """
import os, sys, django, queryprof
from django.conf import settings
settings.configure(DEBUG=True, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x")
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse
from django.urls import path
def page(request):
    loop()
    answer = HttpResponse(PAGE)
    if request.GET.get("policy"):
        answer["Content-Security-Policy"] = request.GET["policy"]
    return answer
def data(request):
    return JsonResponse({"orders": once()})
def part(request):
    return HttpResponse(f"<b>{once()}</b>")
urlpatterns = [path("", page), path("data", data), path("part", part)]
app = queryprof.Badge(get_wsgi_application())
"""
)

WSGI_SERVER = """
import os, sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from web import app
class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
class Quiet(WSGIRequestHandler):
    def log_message(self, *_): pass
    def address_string(self): return self.client_address[0]
server = make_server("127.0.0.1", 0, app, server_class=Server, handler_class=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
"""

ASGI_SERVER = """
import asyncio, socket, uvicorn
from web import app
sock = socket.socket(); sock.bind(("127.0.0.1", 0)); sock.listen(64)
print(sock.getsockname()[1], flush=True)
asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve([sock]))
"""

APPLICATIONS = {
    "flask": (FLASK, WSGI_SERVER),
    "fastapi": (FASTAPI, ASGI_SERVER),
    "django": (DJANGO, WSGI_SERVER),
}
