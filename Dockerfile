# Shardwise as an image: `docker compose up --build`, or `docker build -t shardwise .` and `docker run -p 8421:8421 shardwise`.
ARG PYTHON_VERSION=3.11

FROM python:${PYTHON_VERSION}-slim AS build
# cpu: about 190 MB of torch. cu130 and the like, or "auto": a CUDA build of about 3 GB, which nothing here needs.
ARG TORCH_BACKEND=cpu
ARG UV_VERSION=0.13.9
ENV PATH=/opt/shardwise/bin:$PATH VIRTUAL_ENV=/opt/shardwise
WORKDIR /src
RUN python -m venv /opt/shardwise && pip install --no-cache-dir "uv==${UV_VERSION}"
# what changes rarely first: the packages, then the code
COPY pyproject.toml constraints.txt ./
RUN uv pip install --no-cache --compile-bytecode --torch-backend="${TORCH_BACKEND}" -c constraints.txt \
    -r pyproject.toml --extra postgres
COPY README.md LICENSE ./
COPY projector projector
COPY traces traces
COPY knowledge_base knowledge_base
COPY agents agents
COPY app app
RUN uv pip install --no-cache --compile-bytecode --no-deps . && uv pip uninstall uv

FROM python:${PYTHON_VERSION}-slim
RUN useradd --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin shardwise \
    && install --directory --owner=shardwise --group=shardwise --mode=0750 /data
COPY --from=build /opt/shardwise /opt/shardwise
ENV PATH=/opt/shardwise/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SHARDWISE_DATA_DIR=/data \
    SHARDWISE_HOST=0.0.0.0 \
    SHARDWISE_PORT=8421
USER shardwise
WORKDIR /data
VOLUME /data
EXPOSE 8421
CMD ["shardwise", "serve"]
