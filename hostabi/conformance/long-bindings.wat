;; Bindings longer than 4,096 bytes.
;; include guest
(data (i32.const 0x41a) "\04\10")
