import { createWalletClient, type Hex, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import {
  type ChannelConfig,
  computeChannelId,
  escrowAddress,
} from '../../packages/server/src/x402/channels/channel.ts'
import { channelEscrow } from '../../packages/server/src/x402/channels/contracts.ts'
import { type Asked, ask, type PaymentHeader, quote } from '../support/buyer.ts'
import { awaitMined, connectDevnet } from '../support/payer.ts'
import type { Json, TestReply, TestService } from '../support/service.ts'

/**
 * Code of a collector that gives whoever calls it the amount of a token that it is asked for, out of its own:
 * `token.transfer(caller, amount)`.
 */
const collectorCode = '0x63a9059cbb60e01b60005233600452604435602452602060006044600060006024355af100'

/** A channel whose vouchers somebody else signs than its payer, and that this one has filled. */
export type ForeignChannel = {
  readonly id: string
  /** Signs a payment of the request by the total that was charged before, or that its rest be refunded. */
  readonly sign: (asked: Asked, charged: bigint, type?: 'refund') => Promise<PaymentHeader>
  readonly buy: (
    asked: Asked,
    charged: bigint,
  ) => Promise<{ readonly reply: TestReply; readonly charge: bigint }>
}

/**
 * Opens a channel in the name of a payer that signs nothing for it, as the contract allows: it takes the money from any
 * collector. `asked` is any request that costs something.
 */
export async function openForeignChannel(
  service: TestService,
  {
    payer,
    asked,
    salt = 0,
  }: { readonly payer: string; readonly asked: Asked; readonly salt?: number },
): Promise<ForeignChannel> {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  const stranger = privateKeyToAccount(generatePrivateKey())
  const { receiverAuthorizer, withdrawDelay } = (await readOffer(service, asked)).extra
  const config: ChannelConfig = {
    ...{ payer, payerAuthorizer: stranger.address.toLowerCase() },
    ...{ receiver: devnet.network.payTo, receiverAuthorizer, token: devnet.token, withdrawDelay },
    salt: `0x${String(salt).padStart(64, '0')}`,
  }
  const amount = 1_000_000n
  const chain = connectDevnet(service)
  const collector = privateKeyToAccount(generatePrivateKey()).address
  await chain.setCode({ address: collector, bytecode: collectorCode })
  await devnet.faucet(collector, amount)
  await chain.setBalance({ address: stranger.address, value: 10n ** 20n })
  const wallet = createWalletClient({
    account: stranger,
    chain: baseSepolia,
    transport: http(devnet.rpcUrl),
  })
  const hash = await wallet.writeContract({
    ...{ address: escrowAddress as Hex, abi: channelEscrow.abi, gas: 500_000n },
    ...{ functionName: 'deposit', args: [config, amount, collector, '0x'] },
  } as never)
  const { status } = await awaitMined(chain, hash)
  if (status !== 'success') throw new Error('the deposit did not come')
  const channelId = computeChannelId(devnet.chainId, config)
  const sign: ForeignChannel['sign'] = async (wanted, charged, type) => {
    const accepted = await readOffer(service, wanted)
    const maxClaimableAmount = charged + (type === 'refund' ? 0n : BigInt(accepted.amount))
    const signature = await stranger.signTypedData({
      domain: {
        ...{ name: 'x402 Batch Settlement', version: '1', chainId: devnet.chainId },
        verifyingContract: escrowAddress,
      },
      types: {
        Voucher: [
          { name: 'channelId', type: 'bytes32' },
          { name: 'maxClaimableAmount', type: 'uint128' },
        ],
      },
      primaryType: 'Voucher',
      message: { channelId: channelId as Hex, maxClaimableAmount },
    })
    const voucher = { channelId, maxClaimableAmount: String(maxClaimableAmount), signature }
    const payload = { type: type ?? 'voucher', channelConfig: config, voucher }
    const payment = { x402Version: 2, accepted, payload }
    return { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') }
  }
  return {
    id: channelId,
    sign,
    buy: async (wanted, charged) => {
      const reply = await ask(service, wanted, await sign(wanted, charged))
      return { reply, charge: readCharge(reply) }
    },
  }
}

/** Reads the amount that a reply says was charged to the channel. */
export function readCharge(reply: TestReply): bigint {
  const notice = Buffer.from(reply.headers.get('payment-response') ?? '', 'base64').toString()
  return BigInt(JSON.parse(notice || '{"extra":{"chargedAmount":"-1"}}').extra.chargedAmount)
}

async function readOffer(service: TestService, asked: Asked): Promise<Json> {
  const header = (await quote(service, asked)).headers.get('payment-required') ?? ''
  const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString())
  return accepts.find(({ scheme }: Json) => scheme === 'batch-settlement')
}
