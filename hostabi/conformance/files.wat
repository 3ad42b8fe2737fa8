;; Where no folder of data is granted there are no files: the descriptor 3 is not open.
(import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
;; include guest
(data (i32.const 0x1000) "level")
(func (export "_initialize")
  (if (i32.eqz (call $fd_prestat_get (i32.const 3) (i32.const 0x1010))) (then (unreachable)))
  (if (i32.eqz (call $path_open (i32.const 3) (i32.const 0) (i32.const 0x1000) (i32.const 5) (i32.const 0) (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 0x1010)))
    (then (unreachable))))
