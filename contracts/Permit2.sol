// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

interface Token {
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

/// The part of Permit2 that x402 uses, for the local devnet: a transfer that its owner has signed together with a
/// witness. The interface, the EIP-712 domain and the types are those of the published contract; it has no constructor
/// and no immutable, so its runtime code can be placed at any address.
contract Permit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
    bytes32 private constant PERMISSIONS_TYPEHASH = keccak256("TokenPermissions(address token,uint256 amount)");
    string private constant WITNESS_STUB =
        "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,";

    /// Half of the order of secp256k1: of the two signatures s and n - s only the low one counts (EIP-2).
    uint256 private constant S_MAX = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    mapping(address => mapping(uint256 => uint256)) public nonceBitmap;

    error SignatureExpired(uint256 deadline);
    error InvalidAmount(uint256 maxAmount);
    error InvalidNonce();
    error InvalidSigner();
    error TransferFailed();

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("Permit2"), block.chainid, address(this)));
    }

    function permitWitnessTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 witness,
        string calldata witnessType,
        bytes calldata signature
    ) external {
        if (block.timestamp > permit.deadline) revert SignatureExpired(permit.deadline);
        if (details.requestedAmount > permit.permitted.amount) revert InvalidAmount(permit.permitted.amount);
        use(owner, permit.nonce);
        check(owner, digest(permit, witness, witnessType), signature);
        if (!Token(permit.permitted.token).transferFrom(owner, details.to, details.requestedAmount)) {
            revert TransferFailed();
        }
    }

    /// An owner takes back what it has signed.
    function invalidateUnorderedNonces(uint256 wordPos, uint256 mask) external {
        nonceBitmap[msg.sender][wordPos] |= mask;
    }

    function use(address owner, uint256 nonce) private {
        uint256 bit = 1 << uint8(nonce);
        uint256 word = nonce >> 8;
        uint256 before = nonceBitmap[owner][word];
        if (before & bit != 0) revert InvalidNonce();
        nonceBitmap[owner][word] = before | bit;
    }

    function digest(PermitTransferFrom calldata permit, bytes32 witness, string calldata witnessType)
        private
        view
        returns (bytes32)
    {
        bytes32 permissions =
            keccak256(abi.encode(PERMISSIONS_TYPEHASH, permit.permitted.token, permit.permitted.amount));
        bytes32 typeHash = keccak256(abi.encodePacked(WITNESS_STUB, witnessType));
        bytes32 all =
            keccak256(abi.encode(typeHash, permissions, msg.sender, permit.nonce, permit.deadline, witness));
        return keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), all));
    }

    function check(address owner, bytes32 hash, bytes calldata signature) private pure {
        if (signature.length != 65) revert InvalidSigner();
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        uint8 v = uint8(signature[64]);
        if (uint256(s) > S_MAX) revert InvalidSigner();
        address signer = ecrecover(hash, v, r, s);
        if (signer == address(0) || signer != owner) revert InvalidSigner();
    }
}
