;; A mask without a legal value for one of the elements of its action.
;; include frame
;; include place
;; include vector
;; include choices
(global $elems i32 (i32.const 2))
(global $start i32 (i32.const 0))
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (local $at i32) (local $apart i32)
  (call $vector (local.get $k) (local.get $t) (local.get $env))
  (if (i32.ne (local.get $k) (i32.const 1)) (then (return)))
  (local.set $at (call $place (i32.const 6) (local.get $t) (local.get $env)))
  (local.set $apart (call $apart (i32.const 6)))
  (i32.store8 (local.get $at) (i32.const 1))
  (i32.store8 (i32.add (local.get $at) (local.get $apart)) (i32.load offset=8 (call $state (local.get $env)))) ;; whether it waits for its reset
  (i32.store8 (i32.add (local.get $at) (i32.mul (local.get $apart) (i32.const 2))) (i32.const 1))
  (i32.store8 (i32.add (local.get $at) (i32.mul (local.get $apart) (i32.const 3))) (i32.const 0))
  (i32.store8 (i32.add (local.get $at) (i32.mul (local.get $apart) (i32.const 4))) (i32.const 0)))

(data (i32.const 0x420) "\07")
(data (i32.const 0x487) "\01") (data (i32.const 0x48c) "\02")
(data (i32.const 0x4ac) "\00") (data (i32.const 0x4b4) "\00\06\00\00")
(data (i32.const 0xa00) "\03\00\00\00\02\00\00\00")
(data (i32.const 0x780) "\06\00\00\00\00\00\01\01\04\00\00\00\05\00\00\00")
