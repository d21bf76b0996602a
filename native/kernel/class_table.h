/* class_table.h - what every kernel of portable-f32-1 gives on the self-test's inputs: hashes of the start and of the full run
 * (self_test.h). The class digest covers these lines. A change of a hash is a change of the kernel class: give it a new name. New
 * operators come at the end; tools/cross_check.sh --table prints the lines. */
CLASS_CHECK("elementwise copy", elementwise, ELEMENTWISE_COPY, "b0a7e2b7d8c964dfbbd04bece12b8f77",
            "83c932c90f39d75a2de79e91e94086e7")
CLASS_CHECK("elementwise neg", elementwise, ELEMENTWISE_NEG, "dadd15f853148df6a18b4a3b6dc0a3ad",
            "cfac0376414ce3e95e93484e4d5b1182")
CLASS_CHECK("elementwise abs", elementwise, ELEMENTWISE_ABS, "d5876ba3d35cc73c467b0a7e1ccee448",
            "1c9fe0f27295624abce672ca0d07a473")
CLASS_CHECK("elementwise sign", elementwise, ELEMENTWISE_SIGN, "3a80c7c0d09570850ba9c93af93c7e61",
            "d3a4df9ca2332335999e3eb289abe111")
CLASS_CHECK("elementwise square", elementwise, ELEMENTWISE_SQUARE, "364d71e88d62cd16f73b85eb247493a0",
            "efc20731a87c947fe1ef068723cf9b55")
CLASS_CHECK("elementwise sqrt", elementwise, ELEMENTWISE_SQRT, "bc79b179e43e47b81c6492b682231a08",
            "9d7606b017d17c3ff6e807e9832890d1")
CLASS_CHECK("elementwise rsqrt", elementwise, ELEMENTWISE_RSQRT, "1b2c168a1f0be6fa7852c6bbce4f9faf",
            "b4a6db5c167477f9e46405b8308c394e")
CLASS_CHECK("elementwise reciprocal", elementwise, ELEMENTWISE_RECIPROCAL, "14470d66e1aba280393f25f62074f0c9",
            "d5508386a3ae2e6ed0f8ad4ac60066e9")
CLASS_CHECK("elementwise exp", elementwise, ELEMENTWISE_EXP, "ad2efbf70c773308c0da18c3afb19a4f",
            "d34e2a1729b5abab263de20bd930eb01")
CLASS_CHECK("elementwise expm1", elementwise, ELEMENTWISE_EXPM1, "3161c470bd95f535caec8cd930367a5f",
            "b470f7b76f11cfbd1ac0b9bc2aca849d")
CLASS_CHECK("elementwise log", elementwise, ELEMENTWISE_LOG, "b1b4a6aef5eb24e3112e791178ee650c",
            "86fa9361e18fb3cf757260572ee3bd42")
CLASS_CHECK("elementwise log1p", elementwise, ELEMENTWISE_LOG1P, "603c1af4fdd26dd154bf2ec264454585",
            "5a9fc435b17385f1c8c34347bc5f7cc2")
CLASS_CHECK("elementwise log1mexp", elementwise, ELEMENTWISE_LOG1MEXP, "493bfcbac355d539f6f11a5eb6d536f0",
            "098d5049d06697ac095633ebf0e5a10f")
CLASS_CHECK("elementwise tanh", elementwise, ELEMENTWISE_TANH, "214728791f01b0571666daa52d6d4d93",
            "7f4eb8abf83de5c13d4d7a50e0d9c070")
CLASS_CHECK("elementwise sigmoid", elementwise, ELEMENTWISE_SIGMOID, "f86b943e1fb1d02b98aef5fdd12f198f",
            "8054efda797939416183f7f4465519f5")
CLASS_CHECK("elementwise logsigmoid", elementwise, ELEMENTWISE_LOGSIGMOID, "8312eb66619d5147090bd8c362d9ca92",
            "48ad9bb68920c3f16fd12ebbad39adbe")
CLASS_CHECK("elementwise softplus", elementwise, ELEMENTWISE_SOFTPLUS, "ce2f2e840868e74dbaae58c93e18ed45",
            "e2874c4fbc794338e2289149063d35dc")
CLASS_CHECK("elementwise relu", elementwise, ELEMENTWISE_RELU, "384c31ce7b825a110b805a6c50ddd409",
            "7adbd6e2f0c305a7c6004b57876f4a70")
CLASS_CHECK("elementwise silu", elementwise, ELEMENTWISE_SILU, "31e970d1949c5df9a99436f28f936010",
            "b8cde94fe49f5209f4aa77448a2e3131")
CLASS_CHECK("elementwise silu_slope", elementwise, ELEMENTWISE_SILU_SLOPE, "4d53765e227d6a7d9de6a23052b34dcf",
            "43185258ad0ee13d6782c34fbcec1568")
CLASS_CHECK("elementwise gelu", elementwise, ELEMENTWISE_GELU, "f07cc6079c7608ebc4abb536e7cc9e5b",
            "67fee18ebdbbdc12d59b49e2eddd97c2")
CLASS_CHECK("elementwise gelu_slope", elementwise, ELEMENTWISE_GELU_SLOPE, "0616d655a1493b9d72b3cc60173234a2",
            "323864ad2bc1580b812e286543ae17ea")
CLASS_CHECK("elementwise gelu_tanh", elementwise, ELEMENTWISE_GELU_TANH, "d5ad3de0f6e4a21aed6706cc127921db",
            "6feacbaadbbe5c46319501dc44595026")
CLASS_CHECK("elementwise gelu_tanh_slope", elementwise, ELEMENTWISE_GELU_TANH_SLOPE, "4774f580619d5b2ed6773bf5503b0a5c",
            "55329255aaa157ad293eaa12a7a4d6d4")
CLASS_CHECK("elementwise erf", elementwise, ELEMENTWISE_ERF, "a2b6e4c5081f0b8edb588dd3f734c4d4",
            "f329a54ad39c04d4b00a1ec3e06200d3")
CLASS_CHECK("elementwise sin", elementwise, ELEMENTWISE_SIN, "4dab29787befc2983477f65c8beaf2a9",
            "5f8754a5fad800b24f52b10e15e93afd")
CLASS_CHECK("elementwise cos", elementwise, ELEMENTWISE_COS, "0f0eeb011c11e841651783cfac9d85f5",
            "211b5ee32de9383e680cea55ae787baa")
CLASS_CHECK("elementwise round", elementwise, ELEMENTWISE_ROUND, "cc06b19c2fb8299d4590bcde34a44bed",
            "28496e5fc5f8b60d13d387dec1e8769c")
CLASS_CHECK("elementwise floor", elementwise, ELEMENTWISE_FLOOR, "f10c6e6ea7c37addb20848f96a6683f8",
            "16337c2cc6672b3b34f427c670e16237")
CLASS_CHECK("elementwise add", elementwise, ELEMENTWISE_ADD, "dc420a3cb152255aa6adfbca4f6a178f",
            "014cf8270c7a319324029fa0e16a23a7")
CLASS_CHECK("elementwise sub", elementwise, ELEMENTWISE_SUB, "bb86da6e37acaf1131d7db91ee6e541f",
            "a02cc1602b29ad54bb1dd7f6554ea8dd")
CLASS_CHECK("elementwise mul", elementwise, ELEMENTWISE_MUL, "f12e7569a9d7ee7db82a488b321e2485",
            "5333d49c82251b833afd05f171e0ac3e")
CLASS_CHECK("elementwise div", elementwise, ELEMENTWISE_DIV, "3de158fd658feedf1cb30927a128b585",
            "c7587b7a56628df004b3adc0dd45c66a")
CLASS_CHECK("elementwise pow", elementwise, ELEMENTWISE_POW, "0082eed9ffdcfa1a0e7c62c40cb4dbab",
            "6d9881141fc132701111230746d0bd7a")
CLASS_CHECK("elementwise min", elementwise, ELEMENTWISE_MIN, "a8be00bac9f5794a56484dc8ebe1f8b4",
            "1d7ce9bae287fb931a5c062f02f5132f")
CLASS_CHECK("elementwise max", elementwise, ELEMENTWISE_MAX, "901203fdeec8388595c77e1df2870399",
            "3624d85f61e09fbcf55861a1bb0b3608")
CLASS_CHECK("elementwise lt", elementwise, ELEMENTWISE_LT, "ef0d3d5759ed2a4b2ab09269937ddba6", "c5a0d25c55c11ad1129b5f472e2abe38")
CLASS_CHECK("elementwise le", elementwise, ELEMENTWISE_LE, "ef0d3d5759ed2a4b2ab09269937ddba6", "fd8439a3b0877a902e67f6de5922f0fa")
CLASS_CHECK("elementwise gt", elementwise, ELEMENTWISE_GT, "eb64d1869afe8a1b2bfa4c44878ab258", "49d50503e2debbc021b76cb2e047037a")
CLASS_CHECK("elementwise ge", elementwise, ELEMENTWISE_GE, "eb64d1869afe8a1b2bfa4c44878ab258", "3bf09ccfcc42cf6091a261b5544e0b30")
CLASS_CHECK("elementwise eq", elementwise, ELEMENTWISE_EQ, "e4ae5067703e3d1b9bfb05d188d6dae5", "5a67e615c85ed96ec934c50e8023499e")
CLASS_CHECK("elementwise ne", elementwise, ELEMENTWISE_NE, "42c0cf8f9ae80545d74e3f1e7614d91b", "3f9b280f30c07159e25578a209ceb3a3")
CLASS_CHECK("elementwise where", elementwise, ELEMENTWISE_WHERE, "dc1e08aa9276137561668d100c7a056f",
            "be67361eacd51b420d865ad6149f7a87")
CLASS_CHECK("elementwise fma", elementwise, ELEMENTWISE_FMA, "c73a2a799e1a986bfe2359d49b4ae84a",
            "205ca2260e122af4edd8b28b897d4b93")
CLASS_CHECK("gemm plain", gemm, GEMM_PLAIN, "b92709a36751ffd66171fad499889d84", "9b79582599b8d246e934299c3ac8e8ff")
CLASS_CHECK("gemm onto", gemm, GEMM_ONTO, "ae4e20626e5fccda4f2b2bbf2bdff187", "bea56208fe5c40592eb9a8a9c22764d9")
CLASS_CHECK("gemm low_rank", gemm, GEMM_LOW_RANK, "5f920b5bd947b1944685c87334201d12", "99ace1a484b2f970ca786c1b4b7be820")
CLASS_CHECK("reduce sum", reduce, REDUCE_SUM, "2eba81d70b5d24efc490de1ab4189001", "799003f2b3a0070a1d7310c48a3a9c93")
CLASS_CHECK("reduce mean", reduce, REDUCE_MEAN, "71b3b4e0e00e723563607afceafa8859", "d18a7a3f8f4ca7c75a5f90132433c726")
CLASS_CHECK("reduce max", reduce, REDUCE_MAX, "4318c59d63d2b65cee768f44994fb949", "f9dbb5649515b596313c5475ff7f9033")
CLASS_CHECK("reduce min", reduce, REDUCE_MIN, "b36e3d5a3484f6fd169d761d3a211ecb", "4b46b7bd88d5594e79b57675f1394f96")
CLASS_CHECK("reduce norm", reduce, REDUCE_NORM, "efc5201038c4eaf7a65f12cdbfe9d439", "d025dbd8899c05a6957830799bea3a7c")
CLASS_CHECK("reduce logsumexp", reduce, REDUCE_LOGSUMEXP, "1be8edeeae6998dcc657bcbfab7c90f6", "021d09c4d43b6a72c81d24075bc326a0")
CLASS_CHECK("reduce dot", dot, 0, "77dba85f485be18a410cb991a9474661", "eadd889dd4ed9cb15ecad46c9755b4ee")
CLASS_CHECK("softmax", softmax, 0, "53e62aa1444311a87e4c687f15977b6a", "1287e9b45a453f4098564a8b0b6a55bb")
CLASS_CHECK("softmax masked", softmax, 1, "b12b55bd848b127701618d115e4a4715", "21b6cca586c39745a1a219f55ecfb45b")
CLASS_CHECK("softmax logprob", logprob, 0, "5980ab493a2b869b2e5dacf58318daf0", "0c2eb6e51d1a15a96a8f209e2f50dacf")
CLASS_CHECK("norm rms", norm, 0, "0fe7371f2ca0a822c720f105166b5fce", "47b002185d058907fc370c6f1178dd32")
CLASS_CHECK("norm layer", norm, 1, "7db425e03f0d4f7647b933a17453b04f", "a970c99ac97029e9fefb05745fbf06b8")
CLASS_CHECK("attention causal", attention, 0, "aa01b3e4eab50b45927ae157ffbdb684", "331968d64cce6e09f737cffc73ccbda3")
CLASS_CHECK("attention window softcap", attention, 1, "2fe7c28f60b1acac9ee9c841cea9e66f", "6540c2f0be9e68665a4f0e7f5d75e2aa")
CLASS_CHECK("attention segments", attention, 2, "ad5645e7ab30d916e11631b545ce3ccb", "a27229f30bf43eb18ff0a7d1f5cc068a")
CLASS_CHECK("rope none", rope, ROPE_NONE, "38055773cf69ac57cc007191357fa79e", "bca9a3d6279bf48358f31db7180ecd03")
CLASS_CHECK("rope linear interleaved", rope, ROPE_LINEAR, "a7964dee1562ddcdb50237dfbdbf8c32", "7af0a59b2fd4e3846663971c1a9116fa")
CLASS_CHECK("rope llama3 inverse", rope, ROPE_LLAMA3, "44d5cdd53125db0290b27b4f1295fd0e", "2e4ec7c1f04248dd9e38cd3ab3b974bb")
CLASS_CHECK("rope yarn inverse", rope, ROPE_YARN, "640ff0bb02faab40457d2fde2e589304", "0c9c14274dabb975be2df7f7c2e416d7")
CLASS_CHECK("gather", gather, 0, "b0afdf3fc5e38ad0478682677109bfd6", "4bb4ef474c79ca8312ad7987189111bd")
CLASS_CHECK("order", order, 0, "3c3588641281bde8da6b244911d14dd0", "e4e29e4870331e6a268c119b9f33db08")
CLASS_CHECK("storage", storage, 0, "4d9a8020e3a587207b22971f7156e5ae", "8e21e7bae0c8e4049f1e60fe7eb37b73")
CLASS_CHECK("random", random, 0, "43196f99653d2962ddbda2409dcdc345", "bec24676ed4f9b8b1523e7fef7e23486")
CLASS_CHECK("dct-2", dct, 0, "bcbb4401bc38000b58faa2bc1787e578", "62c3b77149fc7bc5a6eb558f3dd36398")
CLASS_CHECK("dct-3", dct, 1, "fd7d3e7cf406fee01db80a63658d7cca", "82ecc2557ef0b0f7ac0fe7f42dcff520")
CLASS_CHECK("types f64", types, KERNEL_F64, "4ad33946e7d09fac14a263d2ee324d48", "f3d6dd2c62046404652e634cad1c00b7")
CLASS_CHECK("types i32", types, KERNEL_I32, "8362cc70339872de54366c9654a053bf", "bde09103d067eb9930391d0240ef7288")
CLASS_CHECK("cast", cast, 0, "d8db64101dbd3f93ca4750a4af05a895", "8c01d65f72d12e241a2985b8c4310bcb")
CLASS_CHECK("reduce sum f64", sum_f64, 0, "87db42f79d5f14683c4a03df7ad312f8", "4aa15b752e50123635c449d5efa442a2")
CLASS_CHECK("order rows", rows, 0, "e6574777feda3f8cef9afa35a0ccb123", "0fc2a039007db90b5f3ee3551c4f1780")
