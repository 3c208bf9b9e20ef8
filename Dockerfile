# CPU image. The demo is laid ready at build time, so that the first page shows within seconds.
FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/theodolite \
 && /opt/theodolite/bin/pip install --no-cache-dir ".[demo]"

FROM python:3.11-slim
RUN useradd --create-home --uid 1000 theodolite && mkdir /data && chown theodolite /data
COPY --from=build /opt/theodolite /opt/theodolite
USER theodolite
ENV PATH=/opt/theodolite/bin:$PATH THEODOLITE_HOME=/data OMP_WAIT_POLICY=PASSIVE
VOLUME /data
EXPOSE 8501
HEALTHCHECK --start-period=30s CMD python -c "import urllib.request as u; u.urlopen('http://localhost:8501/_stcore/health', timeout=3)"
CMD ["theodolite", "ui", "--host", "0.0.0.0", "--headless"]
