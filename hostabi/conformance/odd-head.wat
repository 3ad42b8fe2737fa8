;; A head whose length is no multiple of 4.
;; include guest
(data (i32.const 0x400) "\82")
