;; An observation of u8 whose values begin below 0, where the type does.
;; include guest
(data (i32.const 0x506) "\01")
(data (i32.const 0x508) "\04")
(data (i32.const 0x52c) "\2c\01")
(data (i32.const 0x706) "\01")
(data (i32.const 0x708) "\08")

(data (i32.const 0x52c) "\02\00\00\00") ;; n
(data (i32.const 0x530) "\ff\ff\ff\ff") ;; start
