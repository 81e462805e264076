FROM python:3.13-slim AS build

RUN pip install --no-cache-dir uv==0.13.9 && uv venv --python /usr/local/bin/python3 /opt/answerback
WORKDIR /src
ENV UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy VIRTUAL_ENV=/opt/answerback

COPY requirements.lock .
RUN uv pip install --require-hashes -r requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY bot bot
COPY channels channels
COPY storage storage
RUN uv pip install --no-deps --no-build-isolation .


FROM python:3.13-slim

RUN useradd --system --uid 10001 --create-home --home-dir /data answerback && mkdir /app
COPY --from=build /opt/answerback /opt/answerback

# An agent of your own (AGENT=package.module:function) goes into /app: docs/docker.md.
WORKDIR /app
ENV PATH="/opt/answerback/bin:$PATH" \
    PYTHONUNBUFFERED=1 \
    PYTHONPATH=/app \
    HOST=0.0.0.0 \
    PORT=8080 \
    DATABASE_URL=sqlite:////data/answerback.db
USER 10001
EXPOSE 8080

# Stopping hands over what is running, for up to SHUTDOWN_GRACE (30 s): `docker stop -t 40`.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s CMD ["python", "-c", \
    "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=3)"]
CMD ["answerback", "serve", "--stay"]
