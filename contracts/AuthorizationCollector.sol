// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

interface AuthorizedToken {
    function transfer(address to, uint256 value) external returns (bool);
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external;
}

/// Brings a payer's deposit into the channel contract by an EIP-3009 authorization to itself. The nonce names the
/// channel, so an authorization fills that channel and no other.
contract AuthorizationCollector {
    /// The published address of the channel contract; nobody else may collect.
    address public constant ESCROW = 0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003;

    error OnlyEscrow();
    error TransferFailed();

    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external {
        if (msg.sender != ESCROW) revert OnlyEscrow();
        (uint256 validAfter, uint256 validBefore, uint256 salt, bytes memory signature) =
            abi.decode(data, (uint256, uint256, uint256, bytes));
        bytes32 nonce = keccak256(abi.encode(channelId, salt));
        AuthorizedToken(token).receiveWithAuthorization(
            payer, address(this), amount, validAfter, validBefore, nonce, signature
        );
        if (!AuthorizedToken(token).transfer(ESCROW, amount)) revert TransferFailed();
    }
}
