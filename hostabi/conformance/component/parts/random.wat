(import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
