/work/obs/examples/plugins/cartpole-rust/target/wasm32-unknown-unknown/release/deps/cartpole.d: src/lib.rs

/work/obs/examples/plugins/cartpole-rust/target/wasm32-unknown-unknown/release/deps/cartpole.wasm: src/lib.rs

src/lib.rs:
