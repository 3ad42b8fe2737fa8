;; Records of tensors longer than 4,096 bytes.
;; include guest
(data (i32.const 0x418) "\04\10")
