import type { Operation } from '../operation.ts'

export const getSupportedPayments: Operation<'getSupportedPayments', 'payments'> = async ({
  service,
}) => {
  const networks = service.payments.ports.methods.map(({ network }) => network)
  return {
    kinds: networks.flatMap((network) => [
      { x402Version: 2, scheme: 'exact', network: network.id },
      { x402Version: 1, scheme: 'exact', network: network.v1Name },
    ]),
    extensions: [],
    signers: Object.fromEntries(networks.map((network) => [network.id, [network.payTo]])),
  }
}
