;; rl_host is called once, before rl_describe, with a record that says its own length, the version and the features.
;; include memory
;; include alloc
;; include create
;; include bind
;; include reset
;; include step

;; include head
;; include tensors
(func (export "rl_host") (param $host i32) (param $len i32) (result i32)
  (if (i32.load (i32.const 0x2f10)) (then (unreachable))) ;; a second time
  (i32.store (i32.const 0x2f10) (i32.const 1))
  (if (i32.lt_u (local.get $len) (i32.const 48)) (then (unreachable)))
  (if (i32.ne (i32.load (local.get $host)) (local.get $len)) (then (unreachable)))
  (if (i32.ne (i32.load16_u offset=4 (local.get $host)) (i32.const 1)) (then (unreachable)))
  (if (i32.eqz (i32.load offset=16 (local.get $host))) (then (unreachable))) ;; room for no tensor
  (if (i32.eqz (i32.load offset=20 (local.get $host))) (then (unreachable)))
  (if (i32.eqz (i32.load offset=24 (local.get $host))) (then (unreachable)))
  (i32.const 0))
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.eqz (i32.load (i32.const 0x2f10))) (then (unreachable))) ;; before rl_host
  (if (i32.ge_u (local.get $cap) (i32.const 0x900))
    (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x900))))
  (i32.const 0x900))
