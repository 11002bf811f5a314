<?php
/**
 * The e-mail to the shop.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * An order that was paid is not cleared any more.
 */
final class Shop_Email extends \WC_Email {

	/**
	 * What WooCommerce shows of it in its settings.
	 */
	public function __construct() {
		$this->id           = 'countersign_stopped';
		$this->title        = __( 'Countersign: do not ship', 'countersign-woocommerce' );
		$this->description  = __( 'To the shop, when an order that was cleared is not any more.', 'countersign-woocommerce' );
		$this->placeholders = array( '{order_number}' => '' );
		parent::__construct();
		$this->recipient = $this->get_option( 'recipient', get_option( 'admin_email' ) );
	}

	/**
	 * The subject.
	 */
	public function get_default_subject() {
		return __( 'Do not ship order #{order_number}', 'countersign-woocommerce' );
	}

	/**
	 * The heading.
	 */
	public function get_default_heading() {
		return __( 'Do not ship order #{order_number}', 'countersign-woocommerce' );
	}

	/**
	 * Send it.
	 *
	 * @param \WC_Order $order The order.
	 */
	public function send_about( $order ): void {
		$this->setup_locale();
		$this->object                         = $order;
		$this->placeholders['{order_number}'] = $order->get_order_number();
		if ( $this->is_enabled() && $this->get_recipient() ) {
			$this->send( $this->get_recipient(), $this->get_subject(), $this->get_content(), $this->get_headers(), $this->get_attachments() );
		}
		$this->restore_locale();
	}

	/**
	 * The words.
	 */
	private function words(): string {
		$words = $this->object->has_status( 'completed' )
			/* translators: %s: why */
			? __( 'The order was completed, and is not cleared any more: %s. If its parcel can still be called back, do so:', 'countersign-woocommerce' )
			/* translators: %s: why */
			: __( 'The order is not cleared any more: %s. Do not ship it. If it was paid, refund it, or have it cleared:', 'countersign-woocommerce' );
		return sprintf( $words, Words::why( $this->object ) );
	}

	/**
	 * The e-mail, in the shop's frame.
	 */
	public function get_content_html() {
		$url = $this->object->get_edit_order_url();
		return WC()->mailer()->wrap_message( $this->get_heading(), '<p>' . esc_html( $this->words() ) . '</p><p><a href="' . esc_url( $url ) . '">' . esc_html( $url ) . '</a></p>' );
	}

	/**
	 * The same without a frame.
	 */
	public function get_content_plain() {
		return $this->words() . "\n\n" . $this->object->get_edit_order_url() . "\n";
	}

	/**
	 * The settings: those of all, and who gets it.
	 */
	public function init_form_fields() {
		parent::init_form_fields();
		$this->form_fields['recipient'] = array(
			'title'       => __( 'Recipients', 'countersign-woocommerce' ),
			'type'        => 'text',
			'description' => __( 'E-mail addresses, with commas between them.', 'countersign-woocommerce' ),
			'default'     => get_option( 'admin_email' ),
		);
	}
}
