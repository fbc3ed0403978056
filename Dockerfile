# Holdfast's image: a virtualenv built in one stage and carried into another, run by a number, not a name.
# It needs no shell, writes nowhere but /tmp, and holds no secret: keys come in at run time.

FROM python:3.11-slim AS build
WORKDIR /src

# --without-pip: the image that runs can install nothing.
RUN ["python", "-m", "venv", "--without-pip", "/opt/venv"]

# The dependencies first and alone: this layer changes only when the lock file does.
COPY requirements.lock ./
RUN ["python", "-m", "pip", "--python", "/opt/venv/bin/python", "install", "--no-cache-dir", "--require-hashes", "-r", "requirements.lock"]

COPY pyproject.toml README.md LICENSE ./
COPY gateway ./gateway
RUN ["python", "-m", "pip", "--python", "/opt/venv/bin/python", "install", "--no-cache-dir", "--no-deps", "."]


FROM python:3.11-slim
LABEL org.opencontainers.image.title="holdfast" \
      org.opencontainers.image.description="A gateway that lets modern MCP clients use legacy MCP servers" \
      org.opencontainers.image.licenses="Apache-2.0"

COPY --from=build /opt/venv /opt/venv
ENV PATH="/opt/venv/bin:${PATH}"

# The base image ships its standard library without bytecode, and the running container cannot write any:
# importing the server once, here, spares every start the compilation. It also fails the build if it cannot load.
RUN ["python", "-c", "import gateway.app, gateway.cli"]
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# Numbers, because `runAsNonRoot` cannot judge a name.
USER 65532:65532
WORKDIR /tmp

# 8080 for clients. 9090 for probes and metrics, when the configuration opens `admin`.
EXPOSE 8080 9090

# Exec form: Holdfast is process 1 and gets SIGTERM itself.
ENTRYPOINT ["holdfast"]
CMD ["serve", "--config", "/etc/holdfast/holdfast.yaml"]
