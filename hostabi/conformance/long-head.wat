;; A head longer than 4,096 bytes.
;; include memory
;; include head
;; include tensors
;; include alloc
;; include create
;; include bind
;; include reset
;; include step
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 0x2000))
    (then
      (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 128))
      (memory.copy (i32.add (local.get $buf) (i32.const 4100)) (i32.const 0x480) (i32.const 0x880))))
  (i32.const 0x2000))
(data (i32.const 0x400) "\04\10\00\00")
(data (i32.const 0x42c) "\84\17\00\00")
