;; The guest that observes three tensors with paths. Which tensor has the last observation of the second and of the third says a
;; case with the globals $gold and $map.
;; include frame
;; include place
;; include vector
;; include advance
;; include loop
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (local $at i32) (local $gold i32) (local $map i32)
  (call $vector (local.get $k) (local.get $t) (local.get $env))
  (local.set $gold (select (i32.const 6) (global.get $gold) (i32.eq (local.get $k) (i32.const 1))))
  (local.set $map (select (i32.const 7) (global.get $map) (i32.eq (local.get $k) (i32.const 1))))
  (i32.store (call $place (local.get $gold) (local.get $t) (local.get $env)) (i32.load (call $state (local.get $env))))
  (local.set $at (call $place (local.get $map) (local.get $t) (local.get $env)))
  (i32.store8 (local.get $at) (i32.load (call $state (local.get $env))))
  (i32.store8 (i32.add (local.get $at) (call $apart (local.get $map))) (i32.and (i32.load offset=4 (call $state (local.get $env))) (i32.const 7))))
(data (i32.const 0x408) "\01") ;; any strides
(data (i32.const 0x410) "\02") ;; needs observations
(data (i32.const 0x420) "\0a")
(data (i32.const 0x430) "\30")
(data (i32.const 0x540) "\0f") ;; "position"
(data (i32.const 0x740) "\0f")
(data (i32.const 0x780) "\02\00\01\00\00\00\04\00\04\00\00\00") ;; i32, at t+1
(data (i32.const 0x7ac) "\08\00\00\00\ff\ff\ff\ff") ;;   of 8 values from -1
(data (i32.const 0x7c0) "\18") ;;   "inventory/gold"
(data (i32.const 0x800) "\02\00\02\00\00\00\01\01\04\00\00\00\02\00\00\00") ;; u8[2], at t+1
(data (i32.const 0x828) "\00\00\7f\43") ;;   up to 255
(data (i32.const 0x83c) "\81\80\80\3b" "\27") ;;   times 1/255; "map"
(data (i32.const 0xc0f) "position\00inventory/gold\00map\00")
