;; A mask that is neither 0 nor 1.
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset

;; include place
;; include advance
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (local $at i32)
  (local.set $at (call $place (local.get $k) (local.get $t) (local.get $env)))
  (f32.store (local.get $at) (f32.convert_i32_s (i32.load (call $state (local.get $env)))))
  (f32.store (i32.add (local.get $at) (call $apart (local.get $k)))
    (f32.convert_i32_s (i32.and (i32.load offset=4 (call $state (local.get $env))) (i32.const 7))))
  (if (i32.eq (local.get $k) (i32.const 1))
    (then
      (local.set $at (call $place (i32.const 6) (local.get $t) (local.get $env)))
      (i32.store8 (local.get $at) (i32.const 2))
      (i32.store8 (i32.add (local.get $at) (call $apart (i32.const 6))) (i32.const 1)))))
;; include loop
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\06\00\00\00\00\00\01\01\04\00\00\00\02\00\00\00")
