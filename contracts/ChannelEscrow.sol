// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

interface Token {
    function balanceOf(address holder) external view returns (uint256);
}

interface Collector {
    /// Moves the payer's tokens to the caller.
    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external;
}

interface ContractWallet {
    /// ERC-1271.
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// Payment channels of the x402 scheme `batch-settlement`: a payer's deposit, out of which a receiver claims what
/// signed vouchers allow, and of which the payer gets the rest back. It has the published contract's interface and
/// domain, so that stock clients use it; it has no constructor and no immutable, so its runtime code can be placed at
/// any address.
contract ChannelEscrow {
    struct ChannelConfig {
        address payer;
        /// Signs vouchers; where it is zero, the payer does.
        address payerAuthorizer;
        address receiver;
        address receiverAuthorizer;
        address token;
        uint40 withdrawDelay;
        bytes32 salt;
    }

    struct Channel {
        /// All that was deposited, without what was refunded or withdrawn; claims leave it as it is.
        uint128 balance;
        uint128 totalClaimed;
    }

    struct Withdrawal {
        uint128 amount;
        /// Zero where none is pending.
        uint40 initiatedAt;
    }

    struct Receiver {
        uint128 totalClaimed;
        uint128 totalSettled;
    }

    struct Voucher {
        ChannelConfig channel;
        uint128 maxClaimableAmount;
    }

    struct VoucherClaim {
        Voucher voucher;
        bytes signature;
        /// The channel's total after this claim, so a repeated claim does nothing.
        uint128 totalClaimed;
    }

    uint40 public constant MIN_WITHDRAW_DELAY = 15 minutes;
    uint40 public constant MAX_WITHDRAW_DELAY = 30 days;

    bytes32 public constant CHANNEL_CONFIG_TYPEHASH = keccak256(
        "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)"
    );
    bytes32 public constant VOUCHER_TYPEHASH = keccak256("Voucher(bytes32 channelId,uint128 maxClaimableAmount)");
    bytes32 public constant REFUND_TYPEHASH = keccak256("Refund(bytes32 channelId,uint256 nonce,uint128 amount)");
    bytes32 public constant CLAIM_ENTRY_TYPEHASH =
        keccak256("ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)");
    bytes32 public constant CLAIM_BATCH_TYPEHASH = keccak256(
        "ClaimBatch(ClaimEntry[] claims)ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)"
    );

    /// Half of the order of secp256k1: of the two signatures s and n - s only the low one counts (EIP-2).
    uint256 private constant S_MAX = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    mapping(bytes32 => Channel) public channels;
    mapping(bytes32 => Withdrawal) public pendingWithdrawals;
    mapping(bytes32 => uint256) public refundNonce;
    mapping(address => mapping(address => Receiver)) public receivers;
    bool private entered;

    event ChannelCreated(bytes32 indexed channelId, ChannelConfig config);
    event ChannelClosed(bytes32 indexed channelId, ChannelConfig config);
    event Deposited(bytes32 indexed channelId, address indexed sender, uint128 amount, uint128 newBalance);
    event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed);
    event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount);
    event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount);
    event WithdrawInitiated(bytes32 indexed channelId, uint128 amount, uint40 finalizeAfter);
    event WithdrawFinalized(bytes32 indexed channelId, address indexed sender, uint128 amount);

    error Reentered();
    error InvalidChannel();
    error InvalidCollector();
    error InvalidSignature();
    error InvalidRefundNonce();
    error WithdrawDelayOutOfRange();
    error ZeroAmount();
    error DepositNotCollected();
    error EmptyBatch();
    error NotAuthorized();
    error ClaimExceedsVoucher();
    error ClaimExceedsBalance();
    error WithdrawalPending();
    error NoWithdrawalPending();
    error WithdrawExceedsBalance();
    error WithdrawDelayNotElapsed();
    error TransferFailed();

    /// A token or a collector that calls back must not find the books half written.
    modifier once() {
        if (entered) revert Reentered();
        entered = true;
        _;
        entered = false;
    }

    function multicall(bytes[] calldata data) external returns (bytes[] memory results) {
        results = new bytes[](data.length);
        for (uint256 i = 0; i < data.length; i++) {
            (bool ok, bytes memory result) = address(this).delegatecall(data[i]);
            if (!ok) {
                assembly ("memory-safe") {
                    revert(add(result, 0x20), mload(result))
                }
            }
            results[i] = result;
        }
    }

    function deposit(
        ChannelConfig calldata config,
        uint128 amount,
        address collector,
        bytes calldata collectorData
    ) external once {
        if (
            config.payer == address(0) || config.receiver == address(0) || config.receiverAuthorizer == address(0)
                || config.token == address(0)
        ) revert InvalidChannel();
        if (config.withdrawDelay < MIN_WITHDRAW_DELAY || config.withdrawDelay > MAX_WITHDRAW_DELAY) {
            revert WithdrawDelayOutOfRange();
        }
        if (amount == 0) revert ZeroAmount();
        if (collector == address(0)) revert InvalidCollector();
        bytes32 id = getChannelId(config);
        Channel storage channel = channels[id];
        channel.balance += amount;
        uint256 before = Token(config.token).balanceOf(address(this));
        Collector(collector).collect(config.payer, config.token, amount, id, collectorData);
        if (Token(config.token).balanceOf(address(this)) != before + amount) revert DepositNotCollected();
        if (channel.balance == amount && channel.totalClaimed == 0) emit ChannelCreated(id, config);
        emit Deposited(id, msg.sender, amount, channel.balance);
    }

    /// For the receiver or the receiver's authorizer of every row.
    function claim(VoucherClaim[] calldata voucherClaims) external once {
        if (voucherClaims.length == 0) revert EmptyBatch();
        for (uint256 i = 0; i < voucherClaims.length; i++) {
            requireReceiver(voucherClaims[i].voucher.channel);
            claimOne(voucherClaims[i]);
        }
    }

    /// For anyone who has the signature of the one authorizer of all rows.
    function claimWithSignature(VoucherClaim[] calldata voucherClaims, bytes calldata authorizerSignature)
        external
        once
    {
        if (voucherClaims.length == 0) revert EmptyBatch();
        address authorizer = voucherClaims[0].voucher.channel.receiverAuthorizer;
        requireSigned(authorizer, getClaimBatchDigest(voucherClaims), authorizerSignature);
        for (uint256 i = 0; i < voucherClaims.length; i++) {
            if (voucherClaims[i].voucher.channel.receiverAuthorizer != authorizer) revert NotAuthorized();
            claimOne(voucherClaims[i]);
        }
    }

    /// Sends a receiver what was claimed for it and not sent yet.
    function settle(address receiver, address token) external once {
        Receiver storage one = receivers[receiver][token];
        uint128 amount = one.totalClaimed - one.totalSettled;
        if (amount == 0) return;
        one.totalSettled = one.totalClaimed;
        send(token, receiver, amount);
        emit Settled(receiver, token, msg.sender, amount);
    }

    function initiateWithdraw(ChannelConfig calldata config, uint128 amount) external once {
        requirePayer(config);
        if (amount == 0) revert ZeroAmount();
        bytes32 id = getChannelId(config);
        Withdrawal storage pending = pendingWithdrawals[id];
        if (pending.initiatedAt != 0) revert WithdrawalPending();
        if (amount > getUnclaimed(id)) revert WithdrawExceedsBalance();
        pending.amount = amount;
        pending.initiatedAt = uint40(block.timestamp);
        emit WithdrawInitiated(id, amount, uint40(block.timestamp) + config.withdrawDelay);
    }

    function finalizeWithdraw(ChannelConfig calldata config) external once {
        requirePayer(config);
        bytes32 id = getChannelId(config);
        Withdrawal memory pending = pendingWithdrawals[id];
        if (pending.initiatedAt == 0) revert NoWithdrawalPending();
        if (block.timestamp < uint256(pending.initiatedAt) + config.withdrawDelay) revert WithdrawDelayNotElapsed();
        delete pendingWithdrawals[id];
        uint128 amount = smaller(pending.amount, getUnclaimed(id));
        giveBack(id, config, amount);
        emit WithdrawFinalized(id, msg.sender, amount);
    }

    /// For the receiver's side: gives the payer back up to this amount at once.
    function refund(ChannelConfig calldata config, uint128 amount) external once {
        requireReceiver(config);
        refundUpTo(config, amount);
    }

    /// For anyone who has the signature of the receiver's authorizer.
    function refundWithSignature(
        ChannelConfig calldata config,
        uint128 amount,
        uint256 nonce,
        bytes calldata receiverAuthorizerSignature
    ) external once {
        bytes32 id = getChannelId(config);
        if (nonce != refundNonce[id]) revert InvalidRefundNonce();
        requireSigned(config.receiverAuthorizer, getRefundDigest(id, nonce, amount), receiverAuthorizerSignature);
        refundUpTo(config, amount);
    }

    /// The whole EIP-712 digest of the config: a channel has another id on every chain and contract.
    function getChannelId(ChannelConfig calldata config) public view returns (bytes32) {
        return toDigest(
            keccak256(
                abi.encode(
                    CHANNEL_CONFIG_TYPEHASH,
                    config.payer,
                    config.payerAuthorizer,
                    config.receiver,
                    config.receiverAuthorizer,
                    config.token,
                    config.withdrawDelay,
                    config.salt
                )
            )
        );
    }

    function getVoucherDigest(bytes32 channelId, uint128 maxClaimableAmount) public view returns (bytes32) {
        return toDigest(keccak256(abi.encode(VOUCHER_TYPEHASH, channelId, maxClaimableAmount)));
    }

    function getRefundDigest(bytes32 channelId, uint256 nonce, uint128 amount) public view returns (bytes32) {
        return toDigest(keccak256(abi.encode(REFUND_TYPEHASH, channelId, nonce, amount)));
    }

    function getClaimBatchDigest(VoucherClaim[] calldata voucherClaims) public view returns (bytes32) {
        bytes32[] memory rows = new bytes32[](voucherClaims.length);
        for (uint256 i = 0; i < voucherClaims.length; i++) {
            VoucherClaim calldata one = voucherClaims[i];
            bytes32 id = getChannelId(one.voucher.channel);
            rows[i] =
                keccak256(abi.encode(CLAIM_ENTRY_TYPEHASH, id, one.voucher.maxClaimableAmount, one.totalClaimed));
        }
        return toDigest(keccak256(abi.encode(CLAIM_BATCH_TYPEHASH, keccak256(abi.encodePacked(rows)))));
    }

    /// A row that was claimed before is skipped; any other must be right, or the whole batch reverts.
    function claimOne(VoucherClaim calldata one) private {
        ChannelConfig calldata config = one.voucher.channel;
        bytes32 id = getChannelId(config);
        Channel storage channel = channels[id];
        if (one.totalClaimed <= channel.totalClaimed) return;
        if (one.totalClaimed > one.voucher.maxClaimableAmount) revert ClaimExceedsVoucher();
        if (one.totalClaimed > channel.balance) revert ClaimExceedsBalance();
        bytes32 digest = getVoucherDigest(id, one.voucher.maxClaimableAmount);
        if (config.payerAuthorizer == address(0)) requireSigned(config.payer, digest, one.signature);
        else if (recover(digest, one.signature) != config.payerAuthorizer) revert InvalidSignature();
        uint128 more = one.totalClaimed - channel.totalClaimed;
        channel.totalClaimed = one.totalClaimed;
        receivers[config.receiver][config.token].totalClaimed += more;
        emit Claimed(id, msg.sender, more, one.totalClaimed);
    }

    function refundUpTo(ChannelConfig calldata config, uint128 amount) private {
        bytes32 id = getChannelId(config);
        if (amount == 0) revert ZeroAmount();
        refundNonce[id] += 1;
        uint128 given = smaller(amount, getUnclaimed(id));
        if (given == 0) return;
        giveBack(id, config, given);
        Withdrawal storage pending = pendingWithdrawals[id];
        uint128 rest = getUnclaimed(id);
        if (pending.initiatedAt != 0) {
            if (rest == 0) delete pendingWithdrawals[id];
            else if (pending.amount > rest) pending.amount = rest;
        }
        emit Refunded(id, msg.sender, given);
    }

    function giveBack(bytes32 id, ChannelConfig calldata config, uint128 amount) private {
        Channel storage channel = channels[id];
        channel.balance -= amount;
        if (amount > 0) send(config.token, config.payer, amount);
        if (channel.balance == 0 && channel.totalClaimed == 0) emit ChannelClosed(id, config);
    }

    function getUnclaimed(bytes32 id) private view returns (uint128) {
        return channels[id].balance - channels[id].totalClaimed;
    }

    function smaller(uint128 a, uint128 b) private pure returns (uint128) {
        return a < b ? a : b;
    }

    function requirePayer(ChannelConfig calldata config) private view {
        if (msg.sender != config.payer && msg.sender != config.payerAuthorizer) revert NotAuthorized();
    }

    function requireReceiver(ChannelConfig calldata config) private view {
        if (msg.sender != config.receiver && msg.sender != config.receiverAuthorizer) revert NotAuthorized();
    }

    /// Tokens that answer nothing are taken, those that answer false are not.
    function send(address token, address to, uint128 amount) private {
        (bool ok, bytes memory answer) =
            token.call(abi.encodeWithSignature("transfer(address,uint256)", to, uint256(amount)));
        if (!ok || token.code.length == 0 || (answer.length > 0 && !abi.decode(answer, (bool)))) {
            revert TransferFailed();
        }
    }

    function toDigest(bytes32 structHash) private view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("x402 Batch Settlement"),
                keccak256("1"),
                block.chainid,
                address(this)
            )
        );
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    function requireSigned(address signer, bytes32 digest, bytes calldata signature) private view {
        if (signer.code.length > 0) {
            (bool ok, bytes memory answer) =
                signer.staticcall(abi.encodeCall(ContractWallet.isValidSignature, (digest, signature)));
            bool isValid = ok && answer.length >= 32
                && abi.decode(answer, (bytes32)) == bytes32(ContractWallet.isValidSignature.selector);
            if (!isValid) revert InvalidSignature();
        } else if (recover(digest, signature) != signer) {
            revert InvalidSignature();
        }
    }

    /// Never the zero address.
    function recover(bytes32 digest, bytes calldata signature) private pure returns (address signer) {
        if (signature.length != 65) revert InvalidSignature();
        uint8 v = uint8(signature[64]);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > S_MAX || (v != 27 && v != 28)) revert InvalidSignature();
        signer = ecrecover(digest, v, bytes32(signature[:32]), s);
        if (signer == address(0)) revert InvalidSignature();
    }
}
