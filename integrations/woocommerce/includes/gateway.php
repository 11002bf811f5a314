<?php
/**
 * The way to the notice, in the place of a payment.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * A payment gateway that takes no payment: it leads to the hosted page, and the order stays unpaid.
 *
 * See https://developer.woocommerce.com/docs/features/payments/payment-gateway-api/.
 */
final class Gateway extends \WC_Payment_Gateway {

	const ID = 'countersign';

	/**
	 * What the buyer sees in the place of the ways to pay.
	 */
	public function __construct() {
		$this->id                 = self::ID;
		$this->enabled            = 'yes';
		$this->has_fields         = false;
		$this->title              = __( 'Legal notice first, payment afterwards', 'countersign-woocommerce' );
		$this->description        = __( 'Before you can pay for this order, you read and initial a legal notice, and may have to show who you are. Nothing is charged until then.', 'countersign-woocommerce' );
		$this->order_button_text  = __( 'Continue to the notice', 'countersign-woocommerce' );
		$this->method_title       = 'Countersign';
		$this->method_description = __( 'Takes no payment. Orders with a classed product go through the notice, and are paid afterwards with the shop’s other methods.', 'countersign-woocommerce' );
	}

	/**
	 * Always: which orders need it is chosen in Gate.
	 */
	public function is_available() {
		return true;
	}

	/**
	 * Lead the buyer to the notice, or to the payment if the order is cleared.
	 *
	 * @param int $order_id The order.
	 * @return array As WooCommerce wants it.
	 */
	public function process_payment( $order_id ) {
		$url = '';
		try {
			$order = Orders::locked(
				(int) $order_id,
				static function ( $order ) use ( &$url ) {
					$url = Orders::begin( $order );
				}
			);
		} catch ( Cannot_Sell $refusal ) {
			return self::failure( $refusal->getMessage() );
		} catch ( Service_Error $error ) {
			wc_get_logger()->warning( "Order {$order_id}: {$error->reason}: {$error->getMessage()}", array( 'source' => 'countersign' ) );
			return self::failure( Gate::sorry() );
		}
		return array(
			'result'   => 'success',
			'redirect' => '' === $url ? $order->get_checkout_payment_url() : $url,
		);
	}

	/**
	 * What the buyer reads: the checkout shows notices, the block checkout the message.
	 *
	 * @param string $message For the buyer.
	 */
	private static function failure( string $message ): array {
		wc_add_notice( $message, 'error' );
		return array(
			'result'  => 'failure',
			'message' => $message,
		);
	}
}
