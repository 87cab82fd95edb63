import type { Operation } from '../operation.ts'

export const getWellKnown: Operation<
  'getWellKnown',
  'tenants' | 'payments' | 'program' | 'faucet' | 'anchoring' | 'publishing'
> = async ({ service }) => {
  const { system } = service.tenants
  const isDevnet = service.faucet !== undefined
  return {
    origin: service.program.origin(),
    guide: service.program.guideUrl(),
    receipt_public_key: system.signer.vkey,
    networks: service.payments.ports.methods.map(({ network, treasury }) => ({
      network: network.id,
      v1_network: network.v1Name,
      chain_id: network.chainId,
      asset: network.asset.address,
      asset_name: network.asset.name,
      decimals: network.asset.decimals,
      pay_to: network.payTo,
      minimum_payment: String(network.minimumPayment),
      // There where money can be sent out.
      ...(treasury && {
        withdrawal_minimum: String(network.withdrawalMinimum),
        withdrawal_fee: String(network.withdrawalFee),
      }),
      // Only a devnet's node is for everybody to use; others are the operator's own.
      ...(isDevnet && network.rpcUrl !== undefined && { rpc_url: network.rpcUrl }),
    })),
    anchors: service.anchoring.map(({ network, place, intervalMs }) => ({
      network,
      ...place,
      origin: system.chain.origin,
      interval_seconds: intervalMs / 1000,
    })),
    publishers: service.publishing.map(({ network, place }) => ({ network, ...place })),
    checkpoint: system.chain.checkpoint(),
  }
}
