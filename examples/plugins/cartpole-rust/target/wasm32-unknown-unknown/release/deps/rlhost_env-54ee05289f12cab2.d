/work/obs/examples/plugins/cartpole-rust/target/wasm32-unknown-unknown/release/deps/rlhost_env-54ee05289f12cab2.d: /work/obs/sdk/rust/src/lib.rs /work/obs/sdk/rust/src/abi.rs /work/obs/sdk/rust/src/author.rs /work/obs/sdk/rust/src/batch.rs /work/obs/sdk/rust/src/component.rs /work/obs/sdk/rust/src/component_abi.rs /work/obs/sdk/rust/src/guest.rs /work/obs/sdk/rust/src/memory.rs /work/obs/sdk/rust/src/state.rs

/work/obs/examples/plugins/cartpole-rust/target/wasm32-unknown-unknown/release/deps/librlhost_env-54ee05289f12cab2.rlib: /work/obs/sdk/rust/src/lib.rs /work/obs/sdk/rust/src/abi.rs /work/obs/sdk/rust/src/author.rs /work/obs/sdk/rust/src/batch.rs /work/obs/sdk/rust/src/component.rs /work/obs/sdk/rust/src/component_abi.rs /work/obs/sdk/rust/src/guest.rs /work/obs/sdk/rust/src/memory.rs /work/obs/sdk/rust/src/state.rs

/work/obs/examples/plugins/cartpole-rust/target/wasm32-unknown-unknown/release/deps/librlhost_env-54ee05289f12cab2.rmeta: /work/obs/sdk/rust/src/lib.rs /work/obs/sdk/rust/src/abi.rs /work/obs/sdk/rust/src/author.rs /work/obs/sdk/rust/src/batch.rs /work/obs/sdk/rust/src/component.rs /work/obs/sdk/rust/src/component_abi.rs /work/obs/sdk/rust/src/guest.rs /work/obs/sdk/rust/src/memory.rs /work/obs/sdk/rust/src/state.rs

/work/obs/sdk/rust/src/lib.rs:
/work/obs/sdk/rust/src/abi.rs:
/work/obs/sdk/rust/src/author.rs:
/work/obs/sdk/rust/src/batch.rs:
/work/obs/sdk/rust/src/component.rs:
/work/obs/sdk/rust/src/component_abi.rs:
/work/obs/sdk/rust/src/guest.rs:
/work/obs/sdk/rust/src/memory.rs:
/work/obs/sdk/rust/src/state.rs:
