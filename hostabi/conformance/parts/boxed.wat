;; The guest whose action is a Box of two elements, whose bounds stand at 0xa00: two lows, then two highs. It refuses an element
;; outside its own, and does 1 where all are at their upper bound, or at 8 or more.
;; include frame
;; include place
;; include observe
;; include episode
;; include loop
(func $act (param $t i32) (param $env i32) (result i32)
  (local $at i32) (local $i i32) (local $x f32) (local $all i32)
  (local.set $at (call $place (i32.const 0) (local.get $t) (local.get $env)))
  (local.set $all (i32.const 1))
  (loop $next
    (local.set $x (f32.load (i32.add (local.get $at) (i32.mul (local.get $i) (call $apart (i32.const 0))))))
    (if (i32.eqz (i32.and (f32.ge (local.get $x) (f32.load offset=0xa00 (i32.shl (local.get $i) (i32.const 2))))
                          (f32.le (local.get $x) (f32.load offset=0xa08 (i32.shl (local.get $i) (i32.const 2))))))
      (then (return (i32.const -7)))) ;; RL_STATUS_ACTION
    (local.set $all (i32.and (local.get $all)
      (f32.ge (local.get $x) (f32.min (f32.load offset=0xa08 (i32.shl (local.get $i) (i32.const 2))) (f32.const 8)))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 2))))
  (local.get $all))
(data (i32.const 0x408) "\01")                                         ;; any strides
(data (i32.const 0x410) "\01")                                         ;; needs actions
(data (i32.const 0x486) "\08\01\02\00\00\00\02\00\00\00")              ;; f32[2], at t
(data (i32.const 0x4ac) "\00")                                         ;;   of no values
