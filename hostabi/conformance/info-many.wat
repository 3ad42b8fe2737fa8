;; A list of 300 figures: a host that names fewer of them runs the guest nevertheless.
;; include frame
;; include place
;; include observe
;; include advance
;; include loop_more
(func $more (param $t i32) (param $env i32)
  (local $i i32)
  (loop $next
    (f32.store (i32.add (call $place (i32.const 6) (local.get $t) (local.get $env)) (i32.mul (local.get $i) (call $apart (i32.const 6))))
      (f32.convert_i32_s (local.get $i)))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 300)))))
(data (i32.const 0x410) "\08") ;; needs info
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\09\00\00\00\00\00\08\01\02\00\00\00\2c\01\00\00")
(data (i32.const 0x7c0) "\0f") ;; "seen"
(data (i32.const 0xc0f) "seen\00")
