// Package sdktest tests the parts of the SDK that are not Go: the C header natively under sanitizers, the Rust
// crate with its own tests, and the memory of guests under Node. Each test is skipped where its tool is missing.
// There is nothing in it to import.
package sdktest
