# The server of regard on CPU. docs/serving.md says how to build and run it.
FROM python:3.11-slim

# torch is pinned to a CPU build, because the open range of pyproject.toml brings in GPU libraries.
# INDEX is the package index with CPU builds that torch's installation page names.
ARG TORCH=torch==2.13.0
ARG INDEX=
RUN pip install --no-cache-dir ${INDEX:+-i "$INDEX"} "$TORCH"

COPY pyproject.toml README.md LICENSE /usr/src/regard/
COPY src /usr/src/regard/src
# The compiler is for the kernels in C++; it is not needed afterwards.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ \
    && pip install --no-cache-dir "/usr/src/regard[serve]" \
    && apt-get purge --yes --auto-remove g++ && rm -r /var/lib/apt/lists/* \
    && rm -r /usr/src/regard \
    && useradd --system --uid 10001 --no-create-home regard

USER 10001
VOLUME /runs
EXPOSE 8000
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Any answer below 500 is a sign of life: with a key, /health answers 401.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", \
    "import http.client as h, sys; c = h.HTTPConnection('127.0.0.1', 8000, timeout=4); c.request('GET', '/health'); sys.exit(c.getresponse().status >= 500)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["regard", "serve", "--host", "0.0.0.0"]
CMD ["/runs/model"]
