;; The guest whose action has $elems elements that are choices, from $start on; how many values each has stands at 0xa00, u32. It
;; refuses others, and does 1 where all are their last value.
;; include episode
;; include loop
(func $act (param $t i32) (param $env i32) (result i32)
  (local $at i32) (local $i i32) (local $choice i32) (local $all i32)
  (local.set $at (call $place (i32.const 0) (local.get $t) (local.get $env)))
  (local.set $all (i32.const 1))
  (loop $next
    (local.set $choice (i32.sub (i32.load (i32.add (local.get $at) (i32.mul (local.get $i) (call $apart (i32.const 0))))) (global.get $start)))
    (if (i32.ge_u (local.get $choice) (i32.load offset=0xa00 (i32.shl (local.get $i) (i32.const 2))))
      (then (return (i32.const -7)))) ;; RL_STATUS_ACTION
    (local.set $all (i32.and (local.get $all)
      (i32.eq (local.get $choice) (i32.sub (i32.load offset=0xa00 (i32.shl (local.get $i) (i32.const 2))) (i32.const 1)))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (global.get $elems))))
  (local.get $all))
(data (i32.const 0x408) "\01") ;; any strides
(data (i32.const 0x410) "\01") ;; needs actions
