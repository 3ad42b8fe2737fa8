;; Messages longer than 4,096 bytes.
;; include guest
;; include slot
(data (i32.const 0x414) "\08\10")
