// Made by scripts/compile-contracts.mjs from contracts/*.sol with solc 0.8.30+commit.73712a01.Emscripten.clang. Do not edit.

/** Runtime code of contracts/Anchors.sol (SHA-256 98290a88435af0b955e3a7543bb96a6ae368f8111adcd27a30ecfa7735ea707c). */
export const anchors = {
  sourceSha256: '98290a88435af0b955e3a7543bb96a6ae368f8111adcd27a30ecfa7735ea707c',
  // biome-ignore format: one signature a line would only be longer
  abi: [{"anonymous":false,"inputs":[{"indexed":true,"internalType":"address","name":"sender","type":"address"},{"indexed":true,"internalType":"bytes32","name":"origin","type":"bytes32"},{"indexed":false,"internalType":"uint256","name":"size","type":"uint256"},{"indexed":false,"internalType":"bytes32","name":"root","type":"bytes32"}],"name":"Anchored","type":"event"},{"inputs":[{"internalType":"bytes32","name":"origin","type":"bytes32"},{"internalType":"uint256","name":"size","type":"uint256"},{"internalType":"bytes32","name":"root","type":"bytes32"}],"name":"anchor","outputs":[],"stateMutability":"nonpayable","type":"function"}],
  code: '0x6080604052348015600f57600080fd5b506004361060285760003560e01c80634dc409c214602d575b600080fd5b603c60383660046080565b603e565b005b6040805183815260208101839052849133917fc66aa619d2fc4deead694d8329640f3aa1dba4a9bd1c5d5b7ce8c1f746b0e391910160405180910390a3505050565b600080600060608486031215609457600080fd5b50508135936020830135935060409092013591905056',
  creationCode:
    '0x6080604052348015600f57600080fd5b5060ab80601d6000396000f3fe6080604052348015600f57600080fd5b506004361060285760003560e01c80634dc409c214602d575b600080fd5b603c60383660046080565b603e565b005b6040805183815260208101839052849133917fc66aa619d2fc4deead694d8329640f3aa1dba4a9bd1c5d5b7ce8c1f746b0e391910160405180910390a3505050565b600080600060608486031215609457600080fd5b50508135936020830135935060409092013591905056',
} as const
