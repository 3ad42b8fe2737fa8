;; A guest reports 257 names, one of 128 bytes and one of 129: a host takes the first 256 that are not too long.
(import "rl" "metric_env" (func $metric (param i32 i32 i32 f64 i32)))
;; include frame
;; include place
;; include observe
;; include advance
;; include loop_more
(func $more (param $t i32) (param $env i32) ;; names are of two letters
  (local $k i32)
  (memory.fill (i32.const 0x1000) (i32.const 97) (i32.const 129))
  (call $metric (local.get $env) (i32.const 0x1000) (i32.const 129) (f64.const 1) (i32.const 0))
  (call $metric (local.get $env) (i32.const 0x1000) (i32.const 128) (f64.const 1) (i32.const 0))
  (loop $next
    (i32.store8 (i32.const 0x1100) (i32.add (i32.const 65) (i32.div_u (local.get $k) (i32.const 16))))
    (i32.store8 (i32.const 0x1101) (i32.add (i32.const 65) (i32.rem_u (local.get $k) (i32.const 16))))
    (call $metric (local.get $env) (i32.const 0x1100) (i32.const 2) (f64.const 1) (i32.const 0))
    (local.set $k (i32.add (local.get $k) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $k) (i32.const 256)))))
