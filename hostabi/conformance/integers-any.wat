;; An observation of whole numbers may be any: here one that would be NaN as a float.
;; include frame
;; include place
;; include advance
;; include loop
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (local $at i32)
  (local.set $at (call $place (local.get $k) (local.get $t) (local.get $env)))
  (i32.store (local.get $at) (i32.load (call $state (local.get $env))))
  (i32.store (i32.add (local.get $at) (call $apart (local.get $k))) (i32.and (i32.load offset=4 (call $state (local.get $env))) (i32.const 7)))
  (i32.store (i32.add (local.get $at) (i32.mul (call $apart (local.get $k)) (i32.const 2))) (i32.const -1)))
(data (i32.const 0x410) "\02") ;; needs observations
(data (i32.const 0x506) "\04") ;; dtype
(data (i32.const 0x50c) "\03\00\00\00") ;; shape
(data (i32.const 0x706) "\04") ;; dtype
(data (i32.const 0x70c) "\03\00\00\00") ;; shape
