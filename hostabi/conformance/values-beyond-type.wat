;; An observation of u8 with 300 values, of which the type has 256.
;; include guest
(data (i32.const 0x506) "\01")
(data (i32.const 0x508) "\04")
(data (i32.const 0x52c) "\2c\01")
(data (i32.const 0x706) "\01")
(data (i32.const 0x708) "\08")
