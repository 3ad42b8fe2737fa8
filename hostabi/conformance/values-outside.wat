;; Numbers of a tensor outside the description.
;; include guest
(data (i32.const 0x534) "\fc\ff\ff\7f")
