;; The head: size 128, ABI 1.0; sizes of the other records; six tensors; strings; all three modes; name and version.
(data (i32.const 0x400) "\80\00\00\00\01\00\00\00")
(data (i32.const 0x418) "\80\00\30\00\20\00\30\00" "\06\00\00\00")
(data (i32.const 0x42c) "\00\08\00\00\20\00\00\00")
(data (i32.const 0x43c) "\07\00\00\00")
(data (i32.const 0x45c) "\00\00\c0\7f") ;; no mean return counts as solved: NaN
(data (i32.const 0x468) "\01\00\00\00\0d\00\00\00")
(data (i32.const 0xc00) "\00conformance\001\00")
