;; A guest with nothing that is optional: five tensors, the modes next_step and disabled.
;; include guest

(data (i32.const 0x420) "\05")
(data (i32.const 0x43c) "\05")
