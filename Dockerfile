# The image, for docker and buildah: `make image`. release/image.py makes the same without a registry, and
# tests/release/test_dockerfile.py holds the two equal. Other bases: --build-arg BASE=debian:trixie-slim
# `make image-tools`, with the package kubernetes, for kubeconfigs and locators: --build-arg LOCK=requirements.lock
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS made
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libcap2-bin \
 && { command -v python3 >/dev/null || apt-get install --yes --no-install-recommends python3 python3-venv; }
RUN python3 -m venv --copies /opt/topodns
ARG LOCK=requirements-image.lock
COPY ${LOCK} /src/
RUN /opt/topodns/bin/python3 -m pip install --no-cache-dir --no-compile --require-hashes --only-binary :all: \
      -r /src/${LOCK}
COPY pyproject.toml README.md LICENSE /src/
COPY topodns /src/topodns
RUN /opt/topodns/bin/python3 -m pip install --no-cache-dir --no-compile --no-deps --no-build-isolation /src \
 && /opt/topodns/bin/python3 -m pip uninstall --yes setuptools pip \
 && cd /opt/topodns/lib/python3.13/site-packages \
 && PYTHONHASHSEED=0 /opt/topodns/bin/python3 -m compileall -qq --invalidation-mode unchecked-hash . \
 && cd /opt/topodns/bin && find . -type f ! -name python3 ! -name topodns ! -name node-cache -delete \
 && find . -type l -delete \
 && setcap cap_net_bind_service=+ep /opt/topodns/bin/python3

FROM ${BASE}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates iptables nftables \
 && { command -v python3 >/dev/null || apt-get install --yes --no-install-recommends python3; } \
 && { ! python3 -m pip --version >/dev/null 2>&1 || python3 -m pip uninstall --yes pip setuptools wheel; } \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* \
 && ln -s /opt/topodns/bin/topodns /topodns \
 && ln -s /opt/topodns/bin/topodns /coredns \
 && ln -s /opt/topodns/bin/node-cache /node-cache
COPY --from=made /opt/topodns /opt/topodns
COPY config/demo /demo
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="topodns" \
      org.opencontainers.image.description="Cluster DNS that knows where the asking pod runs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/opt/topodns/lib/python3.13/site-packages
EXPOSE 53/tcp 53/udp
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/topodns"]
