<?php
/**
 * The e-mails to buyers.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * WooCommerce's note to a buyer, with our words in it.
 */
final class Buyer_Email extends \WC_Email_Customer_Note {

	/**
	 * One of both.
	 *
	 * @param string $id countersign_cleared or countersign_notice.
	 */
	public function __construct( string $id ) {
		parent::__construct();
		// The parent's text is for another e-mail.
		remove_action( 'woocommerce_new_customer_note_notification', array( $this, 'trigger' ) );
		$this->id          = $id;
		$this->title       = 'countersign_cleared' === $id ? __( 'Countersign: pay now', 'countersign-woocommerce' ) : __( 'Countersign: initial the notice', 'countersign-woocommerce' );
		$this->description = 'countersign_cleared' === $id
			? __( 'To a buyer whose order was cleared and is not paid, with the link to pay.', 'countersign-woocommerce' )
			: __( 'To a buyer who has to go through the notice, with the link: when an order was paid before, and when staff send it.', 'countersign-woocommerce' );
		$this->init_form_fields();
		$this->init_settings();
		$this->enabled    = $this->get_option( 'enabled', 'yes' );
		$this->email_type = $this->get_option( 'email_type', 'html' );
	}

	/**
	 * The subject.
	 */
	public function get_default_subject() {
		return 'countersign_cleared' === $this->id
			? __( 'Your notice is recorded: you can pay for order #{order_number} now', 'countersign-woocommerce' )
			: __( 'Your order #{order_number} needs a legal notice', 'countersign-woocommerce' );
	}

	/**
	 * The heading.
	 */
	public function get_default_heading() {
		return 'countersign_cleared' === $this->id ? __( 'You can pay now', 'countersign-woocommerce' ) : __( 'One step is missing', 'countersign-woocommerce' );
	}

	/**
	 * Send it.
	 *
	 * @param \WC_Order $order The order.
	 */
	public function send_about( $order ): void {
		$words = __( 'Your notice is recorded, and your order can be paid now:', 'countersign-woocommerce' );
		if ( 'countersign_notice' === $this->id ) {
			$words = $order->get_date_paid()
				? __( 'We have your payment. Before we can send your order, you read and initial a legal notice, and may have to show who you are. Nothing is charged again:', 'countersign-woocommerce' )
				: __( 'Before you can pay for your order, you read and initial a legal notice, and may have to show who you are. Nothing is charged until then:', 'countersign-woocommerce' );
		}
		$this->trigger(
			array(
				'order_id'      => $order->get_id(),
				'customer_note' => $words . "\n" . $order->get_checkout_payment_url(),
			)
		);
	}
}
