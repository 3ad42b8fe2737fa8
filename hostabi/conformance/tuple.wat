;; Two action tensors with paths are a Tuple or a Dict: a Discrete one and a Box. The guest does 1 where both are at their last value or upper bound.
;; include frame
;; include place
;; include observe
;; include episode
;; include loop
(func $act (param $t i32) (param $env i32) (result i32)
  (local $move i32) (local $aim i32) (local $x f32) (local $y f32)
  (local.set $move (i32.load (call $place (i32.const 0) (local.get $t) (local.get $env))))
  (local.set $aim (call $place (i32.const 6) (local.get $t) (local.get $env)))
  (local.set $x (f32.load (local.get $aim)))
  (local.set $y (f32.load (i32.add (local.get $aim) (call $apart (i32.const 6)))))
  (if (i32.or (i32.gt_u (local.get $move) (i32.const 1))
              (i32.eqz (i32.and (f32.le (f32.abs (local.get $x)) (f32.const 1)) (f32.le (f32.abs (local.get $y)) (f32.const 1)))))
    (then (return (i32.const -7)))) ;; RL_STATUS_ACTION
  (i32.and (local.get $move) (i32.and (f32.eq (local.get $x) (f32.const 1)) (f32.eq (local.get $y) (f32.const 1)))))

(data (i32.const 0x408) "\01") ;; any strides
(data (i32.const 0x410) "\01") ;; needs actions
(data (i32.const 0x420) "\07")
(data (i32.const 0x4c0) "\0f") ;; "move"
(data (i32.const 0x780) "\01\00\01\00\00\00\08\01\02\00\00\00\02\00\00\00") ;; f32[2], at t
(data (i32.const 0x7a4) "\00\00\80\bf\00\00\80\3f")
(data (i32.const 0x7c0) "\14") ;; "aim"
(data (i32.const 0xc0f) "move\00aim\00")
